"""When a trained arm is used again, and when it must not be."""

import json
import shutil

import pytest
from letters_task import letters_trial
from whole_runs import repeatable, run_letters

from loratrial.errors import RunFolderError
from loratrial.evidence.folder import RunFolder
from loratrial.evidence.opened import OpenedRun
from loratrial.tasks.registry import find_task
from loratrial.trial import run as run_module
from loratrial.trial.arms import fingerprints, is_trained, reuse

BASE = {"base": "tiny", "revision": "1"}


def marks(*overrides, base=BASE, data="d", text=None):
    spec = letters_trial(*overrides, **({"text": text} if text else {}))
    task = find_task(spec.task.kind).create(spec.task.options, None, spec.trial.seed)
    return fingerprints(OpenedRun(RunFolder(None), spec, task), base, data)


def changed(*overrides, **named):
    """The arms whose fingerprint is another one."""
    before, after = marks(), marks(*overrides, **named)
    return {arm for arm in before if before[arm] != after[arm]}


ALL = {"base", "warm", "trained", "loo"}


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("arms.warm.learning_rate=0.02", {"warm", "trained"}),
        ("arms.trained.learning_rate=0.02", {"trained"}),
        ("arms.trained.from=base", {"trained"}),
        ("arms.loo.max_groups=3", {"loo"}),
        ("trial.seed=12", ALL),
        ("adapter.rank=3", ALL),
        ("sampling.temperature=1.0", ALL),
        ("sampling.max_completion_tokens=7", ALL),
        ("task.items=3", ALL),
        ("model.dtype=bfloat16", ALL),
        ("model.candidates_per_pass=1", ALL),
        ("model.threads=2", set()),
        ("evaluation.seeds=[1, 2]", set()),
        ("evaluation.in_sample=true", set()),
        ("evaluation.candidates=9", set()),
        ("trial.name=other", set()),
        ("trial.control=warm", set()),
    ],
)
def test_a_fingerprint_covers_what_the_weights_depend_on_and_nothing_else(override, expected):
    assert changed(override) == expected


def test_a_fingerprint_covers_the_base_model_its_template_and_the_data():
    assert changed(base={**BASE, "revision": "2"}) == ALL
    assert changed(base={**BASE, "chat_template_sha256": "x"}) == ALL
    assert changed(data="e") == ALL
    assert changed() == set()


@pytest.fixture
def beside(finished, tmp_path):
    """A folder for runs in which the finished run stands, as a copy that may be changed."""
    shutil.copytree(finished, tmp_path / "runs" / "before")
    return tmp_path / "runs"


@pytest.fixture
def trained(monkeypatch):
    """The arms that were trained, in order."""
    names, train = [], run_module.train

    def noted(run, policy, arm, progress):
        names.append(arm)
        return train(run, policy, arm, progress)

    monkeypatch.setattr(run_module, "train", noted)
    return names


def test_arms_of_the_same_trial_are_used_again_and_the_run_is_the_same(beside, trained, finished):
    folder = run_letters(beside / "again")
    assert trained == []
    assert repeatable(folder) == repeatable(finished)
    assert not list(folder.glob("arms/*.tmp"))


def test_an_arm_is_used_again_when_only_the_evaluation_is_another(beside, trained):
    run_letters(beside / "other", "evaluation.seeds=[8]")
    assert trained == []


def test_an_arm_whose_learning_rate_changed_is_trained_and_so_are_its_children(beside, trained):
    run_letters(beside / "other", "arms.warm.learning_rate=0.02")
    assert trained == ["warm", "trained"]


def test_a_child_is_trained_from_a_parent_that_is_used_again(beside, trained):
    run_letters(beside / "other", "arms.trained.learning_rate=0.02")
    assert trained == ["trained"]


def test_other_data_train_everything_anew(beside, trained):
    run_letters(beside / "other", "task.items=3", "arms.loo.max_groups=1")
    assert trained == ["warm", "trained", "loo"]


def _spoil_weights(run):
    path = run / "arms/warm/adapter/adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")


def _remove_weights(run):
    (run / "arms/warm/adapter/adapter_model.safetensors").unlink()


def _leave_incomplete(run):
    path = run / "arms/warm/arm.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "complete": False}))


def _be_of_another_format(run):
    path = run / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 1}))


def _break_arm_file(run):
    (run / "arms/warm/arm.json").write_text("{")


def _lose_run_file(run):
    (run / "run.json").unlink()


@pytest.mark.parametrize(
    "spoil",
    [
        _spoil_weights,
        _remove_weights,
        _leave_incomplete,
        _be_of_another_format,
        _break_arm_file,
        _lose_run_file,
    ],
)
def test_what_is_not_whole_is_not_used(beside, spoil):
    arm_file = json.loads((beside / "before/arms/warm/arm.json").read_text())
    folder = RunFolder(beside / "new")
    (beside / "a file").write_text("")
    (beside / "new").mkdir()
    assert reuse(folder, "warm", arm_file["fingerprint"]) == beside / "before"
    shutil.rmtree(folder.arm("warm"))
    spoil(beside / "before")
    assert reuse(folder, "warm", arm_file["fingerprint"]) is None
    assert not folder.arm("warm").exists()


def test_an_arm_is_copied_over_what_an_interrupted_training_left(beside):
    mark = json.loads((beside / "before/arms/warm/arm.json").read_text())["fingerprint"]
    folder = RunFolder(beside / "new")
    for leftover in (folder.arm("warm"), folder.arm("warm.tmp")):
        leftover.mkdir(parents=True)
        (leftover / "checkpoint.safetensors").write_text("old")
    reuse(folder, "warm", mark)
    left = sorted(path.name for path in folder.arm("warm").iterdir())
    assert left == ["adapter", "arm.json", "updates.jsonl"]
    assert [path.name for path in (folder.root / "arms").iterdir()] == ["warm"]


def test_an_arm_counts_as_trained_only_when_it_is_whole_and_the_same(beside):
    folder = RunFolder(beside / "before")
    mark = json.loads(folder.arm_file("warm").read_text())["fingerprint"]
    assert is_trained(folder, "warm", mark)
    assert not is_trained(folder, "nobody", mark)
    with pytest.raises(RunFolderError, match="was trained with other settings, data or version"):
        is_trained(folder, "warm", "other")
    _leave_incomplete(folder.root)
    assert not is_trained(folder, "warm", mark)
