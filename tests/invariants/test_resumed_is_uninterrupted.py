"""A run that is killed, wherever it is, goes on to the same adapters, ledgers and result as one that is not.

A death is an exception that nothing catches, raised at the n-th time that the run comes to a certain point. A
run is killed again and again: in its first life at the first such moment, in its second at the second, until
it lives long enough to end.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from letters_task import TRIAL
from whole_runs import learned, ledger, repeatable, resume, run_letters

from loratrial.evidence.ledger import LedgerWriter
from loratrial.learning.learner import Learner
from loratrial.learning.optimizer import Optimizer
from loratrial.policy.policy import Policy
from loratrial.trial import training

TASK = 'kind = "letters_task:LettersTask"\n'
TEXT = (
    TRIAL.replace(TASK, f"{TASK}train_streams = 2\neval_streams = 1\n")
    .replace("candidates = 3", "candidates = 2")
    .replace("max_completion_tokens = 6", "max_completion_tokens = 4")
    .replace("[evaluation]", '[evaluation]\narms = ["base", "trained"]')
    .replace("max_groups = 2", "max_groups = 1\nupdates_per_group = 2")
    .replace('method = "reinforce"', 'method = "grpo"')
)


class Killed(BaseException):
    """A death: not an Exception, so that nothing tidies up after it."""


class Reaper:
    """Counts the times that a run comes to a point, and ends its life at the one that is asked for."""

    def __init__(self) -> None:
        self.at, self.seen = 0, 0

    def pass_by(self) -> None:
        self.seen += 1
        if self.seen == self.at:
            raise Killed


def _before(owner, name, patch: pytest.MonkeyPatch, reaper: Reaper) -> None:
    original = getattr(owner, name)

    def wrapped(*arguments, **named):
        reaper.pass_by()
        return original(*arguments, **named)

    patch.setattr(owner, name, wrapped)


def _after(owner, name, patch: pytest.MonkeyPatch, reaper: Reaper) -> None:
    original = getattr(owner, name)

    def wrapped(*arguments, **named):
        result = original(*arguments, **named)
        reaper.pass_by()
        return result

    patch.setattr(owner, name, wrapped)


def _halfway_through_a_group(patch: pytest.MonkeyPatch, reaper: Reaper) -> None:
    append = LedgerWriter.append_group

    def torn(self, records):
        try:
            reaper.pass_by()
        except Killed:
            data = "".join(record.to_json() + "\n" for record in records)
            self._file.write(data[: len(data) * 2 // 3].encode())
            self._file.flush()
            raise
        append(self, records)

    patch.setattr(LedgerWriter, "append_group", torn)


def _halfway_through_the_learning_record(patch: pytest.MonkeyPatch, reaper: Reaper) -> None:
    add = training._Record.add

    def torn(self, lines, n_groups):
        try:
            reaper.pass_by()
        except Killed:
            with self._path.open("a") as file:
                file.write(json.dumps(lines[0])[:30])
            raise
        add(self, lines, n_groups)

    patch.setattr(training._Record, "add", torn)


POINTS: dict[str, Callable[[pytest.MonkeyPatch, Reaper], None]] = {
    "halfway through the write of a group": _halfway_through_a_group,
    "between a group on disk and its learning": lambda *a: _after(LedgerWriter, "append_group", *a),
    "between two updates": lambda *a: _after(Optimizer, "step", *a),
    "between learning and its record": lambda *a: _after(Learner, "learn", *a),
    "halfway through a line of the learning record": _halfway_through_the_learning_record,
    "between the record and the checkpoint": lambda *a: _before(training, "save_checkpoint", *a),
    "between any file written and its renaming": lambda *a: _before(Path, "replace", *a),
    "when the adapter was saved and its arm not yet": lambda *a: _after(Policy, "save", *a),
    "when the arm was on record and its checkpoint still there": lambda *a: _before(Path, "unlink", *a),
}


WITHOUT_CHECKPOINT = (
    "halfway through the write of a group",
    "between two updates",
    "halfway through a line of the learning record",
    "when the adapter was saved and its arm not yet",
)
"""Points at which a run is also killed when it never came to write a checkpoint."""


def live(folder: Path) -> None:
    """Begin the run at `folder`, or go on with it."""
    if (folder / "run.json").exists():
        resume(folder)
    else:
        run_letters(folder, text=TEXT)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    return run_letters(tmp_path_factory.mktemp("uninterrupted") / "run", text=TEXT)


@pytest.mark.parametrize(
    ("point", "seconds"),
    [*((point, 0.0) for point in POINTS), *((point, 1e9) for point in WITHOUT_CHECKPOINT)],
)
def test_killed_again_and_again_it_ends_as_if_it_had_not_been(
    uninterrupted, tmp_path, monkeypatch, point, seconds
):
    monkeypatch.setattr(training, "SECONDS_BETWEEN_CHECKPOINTS", seconds)
    folder, deaths = tmp_path / "alone" / "run", 0
    while True:
        reaper = Reaper()
        reaper.at = deaths + 1
        with monkeypatch.context() as patch:
            POINTS[point](patch, reaper)
            try:
                live(folder)
                break
            except Killed:
                deaths += 1
    assert repeatable(folder) == repeatable(uninterrupted)
    assert deaths >= 2


@pytest.mark.parametrize("after", range(1, 5))
def test_what_a_checkpoint_covers_is_not_sampled_or_learned_again(
    uninterrupted, tmp_path, monkeypatch, after
):
    """Killed after each single update, of the supervised arm and of the one that learns from its samples."""
    monkeypatch.setattr(training, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    folder = tmp_path / "alone" / "run"
    with monkeypatch.context() as patch:
        reaper = Reaper()
        reaper.at = after
        _after(training, "save_checkpoint", patch, reaper)
        with pytest.raises(Killed):
            live(folder)
    with monkeypatch.context() as patch:
        rest = Reaper()
        _before(training, "save_checkpoint", patch, rest)
        live(folder)
    n_warm, n_trained, n_loo = 2, 2, 1
    assert rest.seen == n_warm + n_trained + n_loo - after
    assert repeatable(folder) == repeatable(uninterrupted)


def test_adam_without_its_state_would_end_elsewhere(uninterrupted, tmp_path, monkeypatch):
    """The other tests would not notice a lost state if it made no difference."""
    monkeypatch.setattr(training, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    monkeypatch.setattr(Optimizer, "set_state", lambda self, tensors: None)
    folder = tmp_path / "alone" / "run"
    with monkeypatch.context() as patch:
        reaper = Reaper()
        reaper.at = 3
        _after(training, "save_checkpoint", patch, reaper)
        with pytest.raises(Killed):
            live(folder)
    live(folder)
    weights = "arms/trained/adapter/adapter_model.safetensors"
    ours, theirs = ((root / weights).read_bytes() for root in (folder, uninterrupted))
    assert ours != theirs


def test_the_uninterrupted_run_has_what_these_tests_kill(uninterrupted):
    updates = [line["update"] for line in learned(uninterrupted / "arms/trained/updates.jsonl")]
    assert updates == [2, 3]
    assert [len(line["examples"]) for line in learned(uninterrupted / "arms/warm/updates.jsonl")] == [2, 2]
    assert len(learned(uninterrupted / "arms/loo/updates.jsonl")) == 2
    groups = ledger(uninterrupted, "arms/trained/ledger")
    assert [(group[0].stream, group[0].item) for group in groups] == [
        ("train-0", 0),
        ("train-1", 0),
        ("train-0", 1),
        ("train-1", 1),
    ]
    assert any(group[0].reading.state for group in groups)


def test_the_folder_that_a_death_leaves_is_never_complete(tmp_path, monkeypatch):
    folder = tmp_path / "alone" / "run"
    with monkeypatch.context() as patch:
        reaper = Reaper()
        reaper.at = 3
        _after(LedgerWriter, "append_group", patch, reaper)
        with pytest.raises(Killed):
            live(folder)
    assert json.loads((folder / "run.json").read_text())["status"] == "running"
    assert not (folder / "result.json").exists()
