import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loratrial.tasks.notes import NotesTask
from loratrial.tasks.notes.notes import (
    MAX_CHARACTERS,
    MAX_SAVED_FACTS,
    MAX_UPDATE_FACTS,
    Fact,
    InvalidNotesError,
    merge,
    parse,
    render,
)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("name: Nora", [("name", "Nora")]),
        ("  name :  Nora  ", [("name", "Nora")]),
        ("- name: Nora\n* size: 42", [("name", "Nora"), ("size", "42")]),
        ("- - linen", [(None, "linen")]),
        ("-5 degrees", [(None, "-5 degrees")]),
        ("deadline: 2026-05-01T18:00:00Z", [("deadline", "2026-05-01T18:00:00Z")]),
        ("2026-05-01T18:00:00Z", [(None, "2026-05-01T18:00:00Z")]),
        ("intent (a, b): active; deadline: x", [("intent (a, b)", "active; deadline: x")]),
        ("Nora Lindholm", [(None, "Nora Lindholm")]),
        (": 42", [(None, ": 42")]),
        ("1st: x", [(None, "1st: x")]),
        ("ünit: x", [("ünit", "x")]),
        ("a: b\r\nc: d\u2028e: f", [("a", "b"), ("c", "d"), ("e", "f")]),
        ("key: {json}", [("key", "{json}")]),
        ("status: No changes.", [("status", "No changes.")]),
        ("No changes..", [(None, "No changes..")]),
    ],
)
def test_lines_become_facts(text: str, facts: list[tuple[str | None, str]]) -> None:
    assert [(fact.key, fact.value) for fact in parse(text)] == facts


@pytest.mark.parametrize("text", ["", "\n \n", "No changes.", "no CHANGES", "- No changes.", "-", "*\n- "])
def test_lines_that_say_nothing(text: str) -> None:
    assert parse(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "```",
        "```\nname: Nora\n```",
        "~~~text",
        "name: Nora\n{",
        "[1]",
        "[2026-03-01T09:00:00Z] x",
        "<tool_call>x",
        "- {a",
        "  {a",
        "name:",
        "name: \nsize: 42",
    ],
)
def test_one_bad_line_makes_the_whole_output_invalid(text: str) -> None:
    with pytest.raises(InvalidNotesError):
        parse(text)


def test_limits_are_exact() -> None:
    def lines(n: int, letter: str = "k") -> str:
        return "\n".join(f"{letter}{number}: {number}" for number in range(n))

    assert len(parse(lines(MAX_UPDATE_FACTS))) == 128
    with pytest.raises(InvalidNotesError, match="more than 128 facts"):
        parse(lines(MAX_UPDATE_FACTS + 1))
    with pytest.raises(InvalidNotesError, match="more than 128 facts"):
        parse("a: 1\n" * (MAX_UPDATE_FACTS + 1))
    saved = merge(parse(lines(128)), parse(lines(128, "m")))
    assert len(saved) == MAX_SAVED_FACTS == len(merge(saved, parse("k5: new")))
    with pytest.raises(InvalidNotesError, match="more than 256 saved facts"):
        merge(saved, parse("one more: x"))
    assert parse("x" * MAX_CHARACTERS)
    with pytest.raises(InvalidNotesError, match="200,000 characters"):
        parse("x" * (MAX_CHARACTERS + 1))
    with pytest.raises(InvalidNotesError, match="200,000 characters saved"):
        merge(parse("x" * MAX_CHARACTERS), parse("y"))


def test_the_same_key_in_other_spelling_replaces_in_place() -> None:
    saved = parse("name: Nora\nhat size: 42\ncity: Oslo")
    merged = merge(saved, parse("Hat-Size: 43"))
    assert [fact.line for fact in merged] == ["name: Nora", "Hat-Size: 43", "city: Oslo"]
    assert merge(saved, parse("colour: red\ncolor: blue"))[-1].line == "color: blue"


def test_another_order_of_words_is_another_key() -> None:
    assert len(merge(parse("hat size: 42"), parse("size hat: 43"))) == 2


def test_an_identical_value_without_a_key_is_not_added_twice() -> None:
    merged = merge(parse("Nora Lindholm"), parse("nora lindholm!\nNora\nname: Nora Lindholm"))
    assert [fact.line for fact in merged] == ["Nora Lindholm", "Nora", "name: Nora Lindholm"]


def test_texts_without_any_token_do_not_replace_each_other() -> None:
    assert len(merge((), parse("!!!\n???\n!!!"))) == 2


def test_what_is_not_mentioned_stays() -> None:
    saved = parse("a: 1\nb: 2")
    assert merge(saved, ()) == saved


texts = st.text(st.characters(), max_size=40) | st.lists(
    st.sampled_from(
        ["- ", "* ", "a", "b: ", ":", "key: v", "No changes.", "\n", " ", "é", "\u2028", "{", "ﾞ: x"]
    ),
    max_size=14,
).map("".join)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(texts, texts)
def test_a_rendered_state_reads_back_as_the_same_facts(first: str, second: str) -> None:
    try:
        saved = merge(merge((), parse(first)), parse(second))
    except InvalidNotesError:
        return
    assert parse(render(saved)) == saved
    assert merge(saved, saved) == saved
    assert len({fact.identity for fact in saved}) == len(saved)


def test_the_round_trip_holds_where_it_is_hardest() -> None:
    for fact in (Fact(None, "2026: a"), Fact("a", ": b"), Fact("ﾞ", "x"), Fact("k", "- v")):
        assert parse(render([fact])) == (fact,)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(texts)
def test_reading_never_raises_and_an_invalid_text_leaves_the_notes(easy: NotesTask, text: str) -> None:
    item = easy.dataset.streams[0].items[0]
    before = "name: Nora\nlinen"
    reading = easy.read(item, text, before)
    if reading.valid:
        assert easy.read(item, "", reading.state).state == reading.state
        assert "name" in reading.state.casefold()
    else:
        assert reading.state == before
        assert reading.problem
        assert reading.facts is None
    easy.score(easy.dataset.target(item), reading)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 100_000,
        "k: v\n" * 100_000,
        "\ud800: \udfff",
        "\x00\x00: \x00",
        "\u202eevil: \u2066x",
        "a:" * 99_999,
        "\u0345" * 1000,
        "- " * 50_000,
    ],
)
def test_hostile_texts_are_read(easy: NotesTask, text: str) -> None:
    item = easy.dataset.streams[0].items[0]
    reading = easy.read(item, text, "")
    assert easy.read(item, "", reading.state).state == reading.state
    assert easy.score(easy.dataset.target(item), reading).reward == 0
