"""The recount: every number of a run derived again from its ledgers, with no model and no trust.

Order, seeds, prompts, readings, scores, carried state, advantages and the result table are each made again
from the trial file and the data, and compared with what the run's files say. What it cannot see: whether the
tokens came from the weights, and whether the text is what the tokens spell (that takes the tokenizer).
"""

from hashlib import sha256
from pathlib import Path
from typing import Any

from loratrial.errors import DataError, RunFolderError, ScorerError
from loratrial.evidence.figures import Measured, result_of
from loratrial.evidence.findings import Findings, RecountReport, told
from loratrial.evidence.folder import read_object
from loratrial.evidence.opened import OpenedRun, open_run
from loratrial.evidence.recount_ledger import Sampled, recount_ledger
from loratrial.evidence.recount_training import check_evaluated_version, recount_training
from loratrial.evidence.results import result_differences
from loratrial.spec import spec_hash
from loratrial.tasks.dataset import dataset_hash


def recount(folder: Path) -> RecountReport:
    """Derive every number of the complete run in `folder` again and compare.

    Raises RunFolderError when it is no run folder or not complete, and TrialFileError or DataError when its
    trial file or data cannot be read. Whatever else does not hold is a difference in the report.
    """
    run = open_run(folder)
    findings = Findings(folder)
    _check_head(run, findings)
    _check_strangers(run, findings)
    _check_labels(run, findings)
    trainings = {arm: recount_training(run, arm, spec, findings) for arm, spec in run.sampled_arms().items()}
    evaluations = {
        (arm, evaluation.section, evaluation.seed): recount_ledger(
            run,
            arm,
            run.folder.evaluation_ledger(arm, evaluation.section, evaluation.seed),
            run.evaluation_places(evaluation),
            Sampled(run.spec.evaluation_candidates, evaluation.mode, run.spec.sampling.max_completion_tokens),
            findings,
        )
        for arm in run.spec.evaluated_arms
        for evaluation in run.evaluations()
    }
    for (arm, section, seed), groups in evaluations.items():
        path = run.folder.evaluation_ledger(arm, section, seed)
        check_evaluated_version(run, arm, path, groups, trainings.get(arm), findings)
    measured = Measured(
        {key: [group.summary for group in groups] for key, groups in evaluations.items()},
        {arm: [group.summary for group in training.groups] for arm, training in trainings.items()},
    )
    return findings.report(_recount_result(run, measured, findings))


def _check_head(run: OpenedRun, findings: Findings) -> None:
    """Whether the trial, the data and the adapters are those that the run says it used."""
    said = run.folder.read_run()
    for name, derived in (
        ("spec_sha256", spec_hash(run.spec)),
        ("data_sha256", dataset_hash(run.task.dataset)),
    ):
        if name in said and said[name] != derived:
            findings.add(run.folder.run_file, None, f"{name} is {said[name]}, recounted {derived}")
    for name, arm in run.spec.arms.items():
        path = run.folder.arm_file(name)
        if arm.method == "none" and not path.exists():
            continue
        try:
            entry = read_object(path)
        except RunFolderError as error:
            findings.add(path, None, told(error, run.folder.root))
            continue
        for key, expected in (("method", arm.method), ("parent", arm.parent), ("complete", True)):
            if entry.get(key) != expected:
                findings.add(path, None, f"{key} is {entry.get(key)!r}, the trial says {expected!r}")
        weights = run.folder.adapter(name) / "adapter_model.safetensors"
        if entry.get("adapter_sha256"):
            found = sha256(weights.read_bytes()).hexdigest() if weights.exists() else "missing"
            if found != entry["adapter_sha256"]:
                findings.add(weights, None, f"SHA-256 {found}, arm.json says {entry['adapter_sha256']}")


def _check_labels(run: OpenedRun, findings: Findings) -> None:
    """Whether the task still proves its labels and its grader: for repairs, by running every candidate."""
    try:
        run.task.validate()
    except (DataError, ScorerError) as error:
        findings.add(run.folder.data / "targets.jsonl", None, told(error, run.folder.root))


def _check_strangers(run: OpenedRun, findings: Findings) -> None:
    """Ledgers that the trial knows nothing of: samples that were drawn and are in no figure."""
    known = {
        *(run.folder.training_ledger(arm) for arm in run.sampled_arms()),
        *(
            run.folder.evaluation_ledger(arm, evaluation.section, evaluation.seed)
            for arm in run.spec.evaluated_arms
            for evaluation in run.evaluations()
        ),
    }
    there = {*run.folder.root.glob("arms/*/ledger.jsonl"), *run.folder.root.glob("evaluation/**/*.jsonl")}
    for path in sorted(there - known):
        findings.add(path, None, "the trial knows no such ledger")


def _recount_result(run: OpenedRun, measured: Measured, findings: Findings) -> dict[str, Any]:
    path = run.folder.result_file
    if findings.lost:
        findings.add(path, None, "was not recounted, because a ledger is not whole")
        return {}
    try:
        derived = result_of(run, measured)
    except (RunFolderError, ScorerError) as error:
        findings.add(path, None, f"cannot be recounted: {told(error, run.folder.root)}")
        return {}
    try:
        stored = read_object(path)
    except RunFolderError as error:
        findings.add(path, None, told(error, run.folder.root))
        return derived
    n_figures, differences = result_differences(stored, derived)
    findings.checked["figures"] += n_figures
    for difference in differences:
        findings.add(path, None, difference)
    return derived
