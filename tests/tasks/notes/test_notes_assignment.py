from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loratrial.tasks.notes.assignment import AttributeIndex, assign, content
from loratrial.tasks.notes.notes import Fact, InvalidNotesError, merge, parse
from loratrial.tasks.notes.world import ATTRIBUTES


def attribute(key: str, value: Any, kind: str = "state", stale: tuple[Any, ...] = ()) -> dict[str, Any]:
    return {"key": key, "value": value, "kind": kind, "stale": list(stale)}


TARGET = [
    attribute("name", "Nora Lindholm"),
    attribute("default size hats", "42", "correct", ("41",)),
    attribute("default size shoes", "42"),
    attribute("materials pants summer", ["linen", "cotton"], "expire", ("silk",)),
]


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("name", 0),
        ("full name", 0),
        ("User's name", 0),
        ("hat size", 1),
        ("my default size for hats", 1),
        ("Shoe-Size", 2),
        ("preferred materials for pants in context summer", 3),
        ("summer pants material", 3),
        ("materials", 3),
        ("pants", 3),
        ("size", None),
        ("default", None),
        ("hats shoes size", None),
        ("sister shoe size", None),
        ("her shoe size", None),
        ("old hat size", None),
        ("materials pants winter", None),
        ("nickname", None),
        ("!!!", None),
        (None, None),
    ],
)
def test_a_key_means_one_attribute_or_none(key: str | None, place: int | None) -> None:
    assert AttributeIndex([a["key"] for a in TARGET]).find(key) == place


def test_a_key_that_names_an_attribute_exactly_is_never_ambiguous() -> None:
    index = AttributeIndex(["materials pants", "materials pants summer"])
    assert index.find("pants materials") == 0
    assert index.find("summer pants materials") == 1
    assert index.find("pants") is None


def test_attributes_of_the_world_are_told_apart_by_canonical_key() -> None:
    keys = [attribute.key for attribute in ATTRIBUTES if attribute.shape != "intent"]
    keys += [
        f"intent {part} {a.key}" for a in ATTRIBUTES if a.shape == "intent" for part in ("status", "deadline")
    ]
    assert len({content(key) for key in keys}) == len(keys)
    index = AttributeIndex(keys)
    assert [index.find(key) for key in keys] == list(range(len(keys)))


@pytest.mark.parametrize("which", [0, 1])
def test_the_phrases_of_statements_lead_to_their_attribute(which: int) -> None:
    plain = [attribute for attribute in ATTRIBUTES if attribute.shape != "intent"]
    index = AttributeIndex([attribute.key for attribute in plain])
    assert [index.find(attribute.phrases[which]) for attribute in plain] == list(range(len(plain)))
    for intent in (a for a in ATTRIBUTES if a.shape == "intent"):
        both = AttributeIndex([f"intent status {intent.key}", f"intent deadline {intent.key}"])
        assert both.find(intent.phrases[which]) is None
        assert both.find(f"{intent.phrases[which]} deadline") == 1
        assert both.find(f"state of {intent.phrases[which]}") == 0


RIGHT = "name: Nora Lindholm\nhat size: 42\nshoe size: 42\nmaterials pants summer: cotton, linen"


def test_right_notes_are_exact_in_free_words() -> None:
    found = assign(parse(RIGHT), TARGET)
    assert found.exact
    assert (found.precision, found.recall, found.f1) == (1.0, 1.0, 1.0)
    assert found.by_kind == {"state": [2, 2], "correct": [1, 1], "expire": [1, 1]}


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("hat size: 41", "stale"),
        ("shoe size: 41", "misattributed"),
        ("name: linen, cotton", "misattributed"),
        ("name: silk", "misattributed"),
        ("name: Nora Lindqvist", "invented"),
        ("sister hat size: 42", "unassigned"),
        ("42", "unassigned"),
        ("hat size: 42", "correct"),
    ],
)
def test_each_fact_is_one_kind_of_right_or_wrong(line: str, field: str) -> None:
    found = assign(parse(line), TARGET)
    counts = {
        name: getattr(found, name) for name in ("correct", "stale", "misattributed", "invented", "unassigned")
    }
    assert counts == {**dict.fromkeys(counts, 0), field: 1}


def test_saying_both_the_old_and_the_new_value_does_not_count() -> None:
    found = assign(parse(RIGHT + "\nsize of my hats: 41"), TARGET)
    assert found.conflicts == 1
    assert "default size hats" not in found.right
    assert (len(found.right), found.claims) == (3, 5)
    assert found.by_kind["correct"] == [0, 1]
    assert not found.exact


def test_the_same_value_under_two_keys_counts_once() -> None:
    found = assign(parse(RIGHT + "\nsize of my hats: 42"), TARGET)
    assert found.exact
    assert (found.correct, found.conflicts, found.claims) == (5, 0, 4)


def test_extra_facts_cost_precision_and_missing_facts_recall() -> None:
    more = assign(parse(RIGHT + "\npet: cat"), TARGET)
    assert (more.precision, more.recall) == (4 / 5, 1.0)
    assert more.f1 == 8 / 9
    fewer = assign(parse("shoe size: 42"), TARGET)
    assert (fewer.precision, fewer.recall, fewer.f1) == (1.0, 1 / 4, 2 / 5)


def test_no_notes_and_no_target_are_worth_nothing() -> None:
    nothing = assign((), TARGET)
    assert (nothing.precision, nothing.recall, nothing.f1, nothing.exact) == (0.0, 0.0, 0.0, False)
    assert assign((), []).f1 == assign((), []).recall == 0.0


lines = st.tuples(
    st.sampled_from(
        ["name", "hat size", "size of hats", "shoe size", "size", "materials", "pet", "his name", ""]
    ),
    st.sampled_from(["Nora Lindholm", "41", "42", "linen, cotton", "silk", "cat", "unknown"]),
).map(lambda pair: f"{pair[0]}: {pair[1]}" if pair[0] else pair[1])


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.lists(lines, max_size=10))
def test_every_fact_is_counted_once_and_the_measures_stay_within_bounds(drawn: list[str]) -> None:
    facts = merge((), parse("\n".join(drawn)))
    found = assign(facts, TARGET)
    kinds = found.correct + found.stale + found.misattributed + found.invented + found.unassigned
    assert kinds == len(facts)
    assert len(found.right) <= found.claims <= len(facts)
    for share in (found.precision, found.recall, found.f1):
        assert 0 <= share <= 1
    assert found.exact == (found.f1 == 1.0)
    assert sum(right for right, _ in found.by_kind.values()) == len(found.right)
    assert sum(total for _, total in found.by_kind.values()) == len(TARGET)
    assert assign(facts[::-1], TARGET) == found


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.text(st.characters(), max_size=30))
def test_any_key_is_judged_without_an_error(key: str) -> None:
    try:
        facts = parse(f"x{key}: 42")
    except InvalidNotesError:
        return
    assert assign(facts, TARGET).correct == 0
    assert assign([Fact(key, "42")], TARGET).claims == 1
