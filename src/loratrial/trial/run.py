"""A whole trial: make the run folder, train the arms, evaluate them, write the result.

Each step looks at what stands on disk and does what is missing, so that running and resuming are the same.
Left out: what a step does, which stands in `training`, `evaluation` and `evidence`.
"""

import os
import platform
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from loratrial import __version__
from loratrial.errors import ModelError, RunFolderError
from loratrial.evidence.figures import build_result
from loratrial.evidence.folder import RunFolder, read_object, write_atomic
from loratrial.evidence.jsonio import pretty
from loratrial.evidence.opened import OpenedRun, open_run
from loratrial.policy.chat import template_sha256
from loratrial.policy.models import load_base
from loratrial.policy.policy import Policy
from loratrial.progress import Progress
from loratrial.seeds import derive_seed
from loratrial.spec import TrialSpec, arm_order, resolved_toml, spec_hash
from loratrial.tasks import dataset
from loratrial.trial.arms import fingerprints, is_trained, reuse
from loratrial.trial.evaluation import evaluate
from loratrial.trial.preparing import make_task
from loratrial.trial.training import CHECKPOINT_FILE, train


def run_folder_for(spec: TrialSpec, root: Path = Path("runs")) -> Path:
    """The folder that a trial runs in unless told otherwise: its name and the start of its hash."""
    return root / f"{spec.trial.name}-{spec_hash(spec)[:8]}"


def run_trial(spec: TrialSpec, folder: Path, progress: Progress, origin: str) -> dict[str, Any]:
    """Run a trial into `folder` and return its result.

    Raises DataError when the task's grader fails on gold answers or a split is empty, ModelError when the
    base cannot be had, RunFolderError when the folder holds a run already or has another writer.
    """
    task = make_task(spec)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunFolderError(f"{folder} cannot be made ({error.strerror}); name another with --to") from None
    run_folder = RunFolder(folder)
    with run_folder.lock():
        if run_folder.run_file.exists():
            raise RunFolderError(f"{folder} holds a run already; resume it, or name another folder with --to")
        write_atomic(run_folder.trial_file, resolved_toml(spec))
        data_sha256 = dataset.write(task.dataset, run_folder.data)
        run_folder.write_run(
            status="running",
            trial=spec.trial.name,
            origin=origin,
            spec_sha256=spec_hash(spec),
            data_sha256=data_sha256,
            versions=_versions(),
        )
        return _carry_out(OpenedRun(run_folder, spec, task), progress)


def resume_trial(folder: Path, progress: Progress) -> dict[str, Any]:
    """Go on with an unfinished run, and return its result; a finished one is only read.

    Raises RunFolderError when its trial file or data are not those that it began with.
    """
    run_folder = RunFolder(folder)
    run_folder.read_run()
    with run_folder.lock():
        run = open_run(folder, complete=False)
        said = run_folder.read_run()
        found = {"spec_sha256": spec_hash(run.spec), "data_sha256": dataset.dataset_hash(run.task.dataset)}
        for name, what in (("spec_sha256", "trial.toml"), ("data_sha256", "data")):
            if said.get(name) != found[name]:
                raise RunFolderError(f"{folder / what} has changed since the run began; run the trial anew")
        return _carry_out(run, progress)


def _carry_out(run: OpenedRun, progress: Progress) -> dict[str, Any]:
    """Do whatever is missing, then write the result."""
    said = run.folder.read_run()
    if said["status"] != "complete":
        policy = _policy(run.spec, progress)
        base = {**policy.base.identity, "chat_template_sha256": template_sha256(policy.tokenizer)}
        said |= {"base": base, "device": _device(policy)}
        marks = fingerprints(run, base, said["data_sha256"])
        for arm in arm_order(run.spec):
            _prepare(run, policy, arm, marks[arm], progress)
            if arm in run.spec.evaluated_arms:
                for evaluation in run.evaluations():
                    evaluate(run, policy, arm, evaluation, progress)
    result = build_result(run.folder.root)
    write_atomic(run.folder.result_file, pretty(result))
    run.folder.write_run(**{**_entries(said), "status": "complete"})
    return result


def _prepare(run: OpenedRun, policy: Policy, arm: str, mark: str, progress: Progress) -> None:
    """Put `policy` into the state of `arm`, trained if need be."""
    spec, folder = run.spec.arms[arm], run.folder
    if spec.method == "none":
        policy.turn_off()
        return
    if is_trained(folder, arm, mark):
        _load(run, policy, arm)
    elif source := reuse(folder, arm, mark):
        progress.say(f"{arm}: trained before in {source}, used again")
        _load(run, policy, arm)
    else:
        started = time.monotonic()
        _start_from(run, policy, spec.parent or "", arm)
        said = train(run, policy, arm, progress)
        entry = {
            "fingerprint": mark,
            "method": spec.method,
            "parent": spec.parent,
            "seconds": round(time.monotonic() - started, 1),
            **said,
            "complete": True,
        }
        write_atomic(folder.arm_file(arm), pretty(entry))
    (folder.arm(arm) / CHECKPOINT_FILE).unlink(missing_ok=True)


def _start_from(run: OpenedRun, policy: Policy, parent: str, arm: str) -> None:
    """The adapter that training starts from: the parent's, or a fresh one on an untrained parent."""
    if run.spec.arms[parent].method == "none":
        policy.reset(derive_seed("adapter", run.spec.trial.seed))
    else:
        _load(run, policy, parent)


def _load(run: OpenedRun, policy: Policy, arm: str) -> None:
    entry = read_object(run.folder.arm_file(arm))
    folder = run.folder.adapter(arm)
    if policy.load(folder) != entry["adapter_sha256"]:
        raise RunFolderError(
            f"{folder} is not the adapter that {run.folder.arm_file(arm)} tells of; delete the folder "
            f"{run.folder.arm(arm)} to train this arm anew"
        )
    policy.version = entry["version"]


def _policy(spec: TrialSpec, progress: Progress) -> Policy:
    torch.set_num_threads(spec.model.threads or os.cpu_count() or 1)
    torch.backends.cuda.matmul.allow_tf32 = spec.model.tf32
    torch.backends.cudnn.allow_tf32 = spec.model.tf32
    if spec.model.device == "cuda" and not torch.cuda.is_available():
        raise ModelError("model.device is 'cuda', but there is no GPU here; use --set model.device=cpu")
    base = load_base(spec.model.base, spec.model.revision, spec.model.dtype, spec.model.device, progress.say)
    return Policy(
        base,
        rank=spec.adapter.rank,
        alpha=spec.adapter.alpha,
        dropout=spec.adapter.dropout,
        targets=spec.adapter.targets,
        gradient_checkpointing=spec.model.gradient_checkpointing,
    )


def _versions() -> dict[str, str]:
    packages = ("torch", "transformers", "peft", "tokenizers", "numpy")
    return {
        "loratrial": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def _device(policy: Policy) -> str:
    """What the model ran on, as a kind of machine."""
    if policy.model.device.type == "cuda":
        return str(torch.cuda.get_device_name(policy.model.device))
    return f"cpu, {torch.get_num_threads()} threads"


def _entries(said: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in said.items() if name != "format"}
