from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loratrial.errors import DataError
from loratrial.tasks.dataset import read, write
from loratrial.tasks.notes import NotesOptions, NotesTask
from loratrial.tasks.notes.gold import canonical_notes, gold_update
from loratrial.tasks.notes.notes import parse
from loratrial.tasks.notes.values import render_value, value_signature
from loratrial.tasks.task import Dataset, Item, Score, Stream, Target, Task


def attribute(key: str, value: Any, kind: str = "state", stale: tuple[Any, ...] = ()) -> dict[str, Any]:
    return {"key": key, "value": value, "kind": kind, "stale": list(stale)}


ATTRIBUTES = [
    attribute("name", "Nora Lindholm"),
    attribute("default size hats", "42", "correct", ("41",)),
    attribute("default size shoes", "42"),
    attribute("colors coats", []),
]
TARGET = Target(
    "s",
    0,
    {
        "current_time": "2026-03-01T09:01:00Z",
        "attributes": ATTRIBUTES,
        "signatures": sorted({value_signature(a["value"]) for a in ATTRIBUTES}),
        "profile_sha256": "0" * 64,
    },
)
ITEM = Item("s", 0, {"current_time": "2026-03-01T09:01:00Z", "sessions": []})
DATASET = Dataset((Stream("s", "train", (ITEM,)),), {("s", 0): TARGET})


def task(**options: Any) -> NotesTask:
    return NotesTask.create(NotesOptions(**options), DATASET, 0)


def score(text: str, state: str = "", **options: Any) -> Score:
    made = task(**options)
    return made.score(TARGET, made.read(ITEM, text, state))


def test_it_offers_what_a_task_offers() -> None:
    assert isinstance(task(), Task)
    assert NotesTask.figures[0].name == "recall"
    assert NotesTask.options_model is NotesOptions
    assert NotesTask.kind == "notes"


def test_every_figure_is_described_and_every_described_figure_is_scored() -> None:
    names = [figure.name for figure in NotesTask.figures]
    assert names == list(score("name: x").figures)
    assert len(set(names)) == len(names)
    assert all(type(value) in (int, float) for value in score("name: x").figures.values())


def test_value_recall_counts_unique_values_and_ignores_keys() -> None:
    found = score("a: Nora Lindholm\nb: 42\nc: 42.\nd: green")
    assert found.reward == 2
    assert type(found.reward) is int
    assert found.figures["recall"] == 2 / 3
    assert (found.figures["matched"], found.figures["target_values"], found.figures["missing"]) == (2, 3, 1)
    assert (found.figures["unsupported"], found.figures["precision"], found.figures["exact"]) == (1, 2 / 3, 0)
    assert found.detail["missing"] == ['["empty"]']
    assert found.detail["unsupported"] == ['["tokens", ["green"]]']
    assert found.figures["note_lines"] == 4


def test_the_assignment_reward_wants_the_value_under_its_attribute() -> None:
    swapped = "name: 42\nhat size: Nora Lindholm\ncoat colors: no preference"
    assert score(swapped).reward == 3
    found = score(swapped, reward="assignment_f1")
    assert found.reward == found.figures["assignment_f1"] == 2 / 7
    assert found.figures["recall"] == 1.0
    assert found.figures["misattributed"] == 2
    assert found.detail["by_kind"] == {"state": [1, 3], "correct": [0, 1]}


def test_candidates_of_equal_worth_have_exactly_equal_rewards() -> None:
    one = score("name: Nora Lindholm\nhat size: 42", reward="assignment_f1").reward
    other = score("shoe size: 42\ncoat colors: none", reward="assignment_f1").reward
    assert one == other


def test_a_stale_value_is_seen() -> None:
    assert score("hat size: 41").figures["stale"] == 1
    assert score("hat size: 42", "hat size: 41").figures["stale"] == 0


def test_what_was_saved_before_counts_with_what_is_new() -> None:
    assert score("No changes.", canonical_notes(TARGET.private)).figures["exact_state"] == 1
    assert score("hat size: 42", "name: Nora Lindholm").reward == 2


def test_an_invalid_output_scores_nothing_and_keeps_the_notes() -> None:
    state = canonical_notes(TARGET.private)
    for reward in ("value_recall", "assignment_f1"):
        found = score('{"name": "Nora Lindholm"}', state, reward=reward)
        assert found.reward == 0
        assert found.figures["valid"] == found.figures["recall"] == found.figures["matched"] == 0
        assert found.figures["missing"] == 3
    assert task().read(ITEM, "```", state).state == state


def test_an_update_that_would_overfill_the_notes_is_invalid_and_keeps_them() -> None:
    state = "\n".join(f"k{n}: {n}" for n in range(256))
    reading = task().read(ITEM, "one more: x", state)
    assert not reading.valid
    assert reading.state == state
    assert task().read(ITEM, "k7: changed", state).valid


def test_a_reading_keeps_what_was_said_as_json() -> None:
    reading = task().read(ITEM, "- hat size: 43\nlinen", "name: Nora\nHat size: 42")
    assert reading.facts == [{"key": "hat size", "value": "43"}, {"key": None, "value": "linen"}]
    assert reading.state == "name: Nora\nhat size: 43\nlinen"


def test_notes_that_no_reading_gave_are_refused() -> None:
    with pytest.raises(DataError, match="cannot be read back"):
        task().read(ITEM, "name: Nora", "{}")


def test_gold_for_empty_notes_is_the_canonical_notes() -> None:
    assert (
        task().gold(ITEM, "", TARGET)
        == canonical_notes(TARGET.private)
        == ("name: Nora Lindholm\ndefault size hats: 42\ndefault size shoes: 42\ncolors coats: no preference")
    )


def test_gold_says_only_what_is_new_or_changed_under_the_keys_in_use() -> None:
    state = "full name: nora lindholm\nHat size: 41\npreferred coat colors: none"
    assert task().gold(ITEM, state, TARGET) == "Hat size: 42\ndefault size shoes: 42"


def test_gold_for_complete_notes_says_no_changes() -> None:
    assert task().gold(ITEM, canonical_notes(TARGET.private), TARGET) == "No changes."


def test_gold_mends_every_key_that_contradicts() -> None:
    state = canonical_notes(TARGET.private) + "\nhat size: 41\nmy hat size: 40"
    update = task().gold(ITEM, state, TARGET)
    assert update == "hat size: 42\nmy hat size: 42"
    assert score(update, state).figures["exact_state"] == 1


lines = st.tuples(
    st.sampled_from(
        ["name", "hat size", "size", "shoe size", "coat colors", "full name", "pet", "default size hats"]
    ),
    st.sampled_from(["Nora Lindholm", "41", "42", "no preference", "cat"]),
).map(lambda pair: f"{pair[0]}: {pair[1]}")


@settings(deadline=None, derandomize=True, max_examples=150)
@given(st.lists(lines, max_size=8))
def test_gold_makes_any_notes_complete_and_a_second_time_changes_nothing(drawn: list[str]) -> None:
    made = task()
    state = made.read(ITEM, "\n".join(drawn), "").state
    after = made.read(ITEM, made.gold(ITEM, state, TARGET), state)
    found = made.score(TARGET, after).figures
    assert (found["recall"], found["assignment_recall"]) == (1.0, 1.0)
    assert found["conflicts"] == found["stale"] == found["misattributed"] == 0
    assert gold_update(TARGET.private, after.state) == "No changes."


@pytest.mark.parametrize("fixture", ["easy", "hard"])
def test_the_grader_is_proven_on_generated_data(fixture: str, request: pytest.FixtureRequest) -> None:
    made: NotesTask = request.getfixturevalue(fixture)
    made.validate()
    for target in made.dataset.targets.values():
        facts = parse(canonical_notes(target.private))
        assert [fact.value for fact in facts] == [
            render_value(a["value"]) for a in target.private["attributes"]
        ]


def test_other_candidates_never_leak_into_what_is_carried(easy: NotesTask) -> None:
    item = easy.dataset.streams[0].items[0]
    alone = easy.read(item, "name: x", "a: 1")
    for other in ("b: 2", "{", "name: y"):
        easy.score(easy.dataset.target(item), easy.read(item, other, "a: 1"))
    assert easy.read(item, "name: x", "a: 1") == alone


def broken(**changes: Any) -> NotesTask:
    target = replace(TARGET, private={**TARGET.private, **changes})
    return NotesTask.create(NotesOptions(), Dataset(DATASET.streams, {("s", 0): target}), 0)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"signatures": ['["empty"]']}, "the gold update does not score exact"),
        ({"attributes": [*ATTRIBUTES, attribute("hats default size", "44")]}, "does not score exact"),
        ({"attributes": [attribute("name", "None")]}, "does not score exact"),
        ({"attributes": [], "signatures": []}, "goes unnoticed|does not score exact"),
    ],
)
def test_a_label_that_the_grader_cannot_prove_is_named(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(DataError, match=f"item 0 of stream 's': .*({says})"):
        broken(**changes).validate()


def test_notes_with_one_value_only_are_proven_without_an_exchange() -> None:
    broken(attributes=ATTRIBUTES[1:3], signatures=['["tokens", ["42"]]']).validate()


def test_a_written_dataset_makes_the_same_task(easy: NotesTask, tmp_path: Path) -> None:
    write(easy.dataset, tmp_path)
    again = NotesTask.create(NotesOptions(train_users=1), read(tmp_path), 99)
    assert again.dataset == easy.dataset
    again.validate()


@pytest.mark.parametrize(
    ("dataset", "says"),
    [
        (
            Dataset((Stream("s", "train", (Item("s", 0, {"question": "?"}),)),), {("s", 0): TARGET}),
            "item 0 of stream 's'",
        ),
        (
            Dataset(
                (Stream("s", "train", (Item("s", 0, {**ITEM.public, "profile": 1}),)),), {("s", 0): TARGET}
            ),
            "profile",
        ),
        (Dataset(DATASET.streams, {("s", 0): Target("s", 0, {"answer": "A"})}), "the target of item 0"),
        (Dataset(DATASET.streams, {}), "has no target"),
    ],
)
def test_a_dataset_of_another_task_is_refused(dataset: Dataset, says: str) -> None:
    with pytest.raises(DataError, match=says):
        NotesTask.create(NotesOptions(), dataset, 0)
