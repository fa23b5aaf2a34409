import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loratrial.tasks.notes.values import EMPTY, UNKNOWN, render_value, text_signature, tokens, value_signature


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Size 7.5, in EU!", ("size", "7.5", "in", "eu")),
        ("2026-03-02T18:00:00Z", ("2026-03-02t18:00:00z",)),
        ("until 2026-03-02.", ("until", "2026-03-02")),
        ("2026-03-02T18:00:00.5+01:00", ("2026-03-02t18:00:00.5+01:00",)),
        ("2026-03-02T18:00", ("2026-03-02t18:00",)),
        ("12026-03-02", ("12026", "03", "02")),
        ("2026-03-021", ("2026", "03", "021")),
        ("Colour COLOURS", ("color", "colors")),
        ("3 kilograms, 2 centimetres, 5 Euros, 1 dollar", ("3", "kg", "2", "cm", "5", "eur", "1", "usd")),
        ("ＡＢＣ ﬁt STRASSE straße", ("abc", "fit", "strasse", "strasse")),
        ("snake_case a-b", ("snake", "case", "a", "b")),
        ("7.5cm", ("7.5", "cm")),
        ("1.2.3", ("1.2", "3")),
        ("... - !", ()),
        ("\ud800\x00\u202e ok", ("ok",)),
    ],
)
def test_tokens(text: str, expected: tuple[str, ...]) -> None:
    assert tokens(text) == expected


@pytest.mark.parametrize("text", ["unknown", "Explicitly unknown.", "NULL", "not known"])
def test_texts_that_mean_unknown(text: str) -> None:
    assert text_signature(text) == UNKNOWN == value_signature(None)


@pytest.mark.parametrize(
    "text", ["No preference", "no preferences.", "no stated preference", "None", "empty"]
)
def test_texts_that_mean_empty(text: str) -> None:
    assert text_signature(text) == EMPTY == value_signature([])


@pytest.mark.parametrize(
    "text", ["unknown size", "no preference until May", "no", "preference", "nothing", "known not"]
)
def test_texts_that_only_come_near_stay_values(text: str) -> None:
    assert json.loads(text_signature(text))[0] == "tokens"


def test_order_case_and_punctuation_do_not_matter_but_repeats_and_wholes_do() -> None:
    assert (
        text_signature("Linen, cotton")
        == text_signature("COTTON; linen")
        == value_signature(["linen", "cotton"])
    )
    assert text_signature("linen") != value_signature(["linen", "cotton"])
    assert text_signature("linen linen") != text_signature("linen")


def test_the_signature_is_written_as_in_the_published_rows() -> None:
    assert value_signature(["linen", "cotton"]) == '["tokens", ["cotton", "linen"]]'
    assert value_signature({"size": "42", "sizing_system": "EU"}) == '["tokens", ["42", "eu"]]'


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1000000, "1000000"),
        (1e6, "1000000"),
        (7.5, "7.5"),
        (1e-7, "0.0000001"),
        (42.0, "42"),
        (1e22, "1" + "0" * 22),
        (0.0, "0"),
    ],
)
def test_numbers_are_plain_decimals(number: float, text: str) -> None:
    assert render_value(number) == text
    assert value_signature({"amount": number}) == text_signature(text)


def test_a_missing_part_of_a_compound_says_nothing() -> None:
    assert render_value({"subtype": None, "season": "summer", "flag": True}) == "summer, true"
    assert value_signature({"subtype": None}) == EMPTY


leaves = (
    st.text(max_size=8) | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans()
)
values = (
    st.none()
    | leaves
    | st.lists(leaves, max_size=4)
    | st.dictionaries(st.text(max_size=3), leaves, max_size=3)
)


@settings(deadline=None, derandomize=True, max_examples=150)
@given(values)
def test_a_rendered_value_has_the_signature_of_the_value(value: object) -> None:
    assert text_signature(render_value(value)) == value_signature(value)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.text(st.characters(), max_size=60))
def test_tokens_of_tokens_are_the_same_tokens_and_signatures_are_plain_ascii(text: str) -> None:
    once = tokens(text)
    assert tokens(" ".join(once)) == once
    assert text_signature(text).isascii()
    assert text_signature(text) == text_signature(f"  {text}\n.")
