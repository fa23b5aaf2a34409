from collections import defaultdict

import pytest

from loratrial.tasks.notes import NotesTask
from loratrial.tasks.notes.references import REFERENCES, copy_last_session, copy_statements
from loratrial.tasks.task import Item, Target

NO_TARGET = Target("s", 0, {})


def walked(task: NotesTask, name: str) -> dict[str, float]:
    """Mean of each figure over all items, the policy's own notes carried along each stream."""
    totals: dict[str, float] = defaultdict(float)
    n_items = 0
    for stream in task.dataset.streams:
        state = ""
        for item in stream.items:
            target = task.dataset.target(item)
            reading = task.read(item, task.references()[name](item, state, target), state)
            state = reading.state
            for figure, value in task.score(target, reading).figures.items():
                totals[figure] += value
            n_items += 1
    return {figure: total / n_items for figure, total in totals.items()}


def item(*sessions: list[str]) -> Item:
    public = {
        "current_time": "",
        "sessions": [{"start": "", "statements": [{"time": "", "text": t} for t in s]} for s in sessions],
    }
    return Item("s", len(sessions) - 1, public)


@pytest.mark.parametrize("fixture", ["easy", "hard"])
def test_every_reference_writes_valid_notes(fixture: str, request: pytest.FixtureRequest) -> None:
    task: NotesTask = request.getfixturevalue(fixture)
    assert list(task.references()) == [
        "empty",
        "copy_statements",
        "copy_last_session",
        "echo_notes",
        "oracle",
    ]
    for name in REFERENCES:
        assert walked(task, name)["valid"] == 1.0


def test_the_oracle_is_exact(easy: NotesTask, hard: NotesTask) -> None:
    for task in (easy, hard):
        figures = walked(task, "oracle")
        assert (
            figures["exact"] == figures["exact_state"] == figures["recall"] == figures["assignment_f1"] == 1.0
        )


def test_empty_and_echoed_notes_are_worth_nothing(easy: NotesTask) -> None:
    for name in ("empty", "echo_notes"):
        figures = walked(easy, name)
        assert figures["recall"] == figures["assignment_f1"] == figures["note_lines"] == 0


def test_copying_everything_games_recall_and_not_assignment(easy: NotesTask) -> None:
    figures = walked(easy, "copy_statements")
    assert figures["recall"] > 0.9
    assert figures["precision"] < 0.8
    assert figures["assignment_precision"] < 0.5
    assert figures["exact_state"] == 0


def test_copying_finds_keys_and_values_in_sentences() -> None:
    shown = item(
        ["Correction: my hat size is 42.", "It rained.", "My coat colors are red, teal."],
        ["For now only, my hat size: 43. This applies until 2026-03-09T09:00:00Z; after that it returns."],
    )
    last = "For now only, my hat size: 43"
    assert copy_last_session(shown, "", NO_TARGET) == last
    assert (
        copy_statements(shown, "", NO_TARGET)
        == f"Correction, my hat size: 42\nMy coat colors: red, teal\n{last}"
    )


def test_copying_stops_at_what_one_update_may_hold() -> None:
    shown = item([f"My k{n} is {n}." for n in range(200)])
    lines = copy_statements(shown, "", NO_TARGET).split("\n")
    assert len(lines) == 128
    assert lines[-1] == "My k199: 199"


def test_copying_adds_nothing_to_full_notes_and_still_corrects_them(easy: NotesTask) -> None:
    full = "\n".join(f"k{n}: {n}" for n in range(256))
    update = copy_statements(item(["Oh well, it is late.", "K7: new."]), full, NO_TARGET)
    assert update == "K7: new"
    assert easy.read(item([]), update, full).valid


def test_nothing_to_copy_says_so() -> None:
    assert copy_statements(item(["It rained."]), "", NO_TARGET) == "No changes."


def test_only_the_oracle_looks_at_the_target(easy: NotesTask) -> None:
    shown = easy.dataset.streams[0].items[1]
    for name, reference in REFERENCES.items():
        if name == "oracle":
            with pytest.raises(KeyError):
                reference(shown, "a: 1", NO_TARGET)
        else:
            assert reference(shown, "a: 1", NO_TARGET) == reference(shown, "a: 1", easy.dataset.target(shown))


def test_echoed_notes_are_the_saved_notes() -> None:
    assert REFERENCES["echo_notes"](item([]), "name: Nora", NO_TARGET) == "name: Nora"
