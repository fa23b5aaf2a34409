"""Descriptions say one thing each."""

import ast
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loratrial.tasks.repair.describe import Wording, describe
from loratrial.tasks.repair.families import FAMILIES, draw_expression
from loratrial.tasks.repair.kinds import Kinds
from loratrial.tasks.repair.language import Expression, parse
from loratrial.tasks.repair.mutations import mutants

KINDS: Kinds = {"x": "int", "y": "int", "xs": "list", "ys": "list", "s": "str", "t": "str"}


def words(source: str, wording: Wording = 0, kinds: Kinds = KINDS) -> str:
    expression = parse(source)
    assert isinstance(expression, Expression)
    return describe(expression.tree, kinds, wording)


@pytest.mark.parametrize(
    ("source", "first", "second"),
    [
        ("x + y", "the sum of x and y", "x plus y"),
        ("x - -1", "x minus -1", "x with -1 taken away"),
        ("s + t", "s followed by t", "s joined with t"),
        (
            "abs(x - 2)",
            "the absolute value of (x minus 2)",
            "the distance of (x with 2 taken away) from zero",
        ),
        ("max(x, y, 3)", "the largest of x, y and 3", "whichever is greatest among x, y and 3"),
        ("max(xs)", "the largest item of xs", "the maximum of xs"),
        ("x in xs", "whether x is in xs", "whether x occurs in xs"),
        ("xs[0]", "the first item of xs", "the item of xs at index 0"),
        ("s[-1]", "the last character of s", "the character of s at index -1"),
        ("xs[9]", "the item of xs at index 9", "the item of xs at index 9"),
        ("xs[1:]", "xs without the first of its items", "all items of xs after the first"),
        ("xs[:2]", "the first 2 items of xs", "the leading 2 items of xs"),
        ("xs[-2:]", "the last 2 items of xs", "the trailing 2 items of xs"),
        ("s[::-1]", "s reversed", "s from back to front"),
        ("xs[:]", "a copy of xs", "a copy of xs"),
        (
            "xs[1:x:2]",
            "the items of xs from index 1 up to but not including index x in steps of 2",
            "the items of xs from index 1 up to but not including index x in steps of 2",
        ),
        (
            "x if not (x < y or y in xs) else 1",
            "x if it is not so that (x is less than y or y is in xs), otherwise 1",
            "x when it is false that (x is below y or y occurs in xs), and 1 when not",
        ),
        (
            "x < y < 3",
            "whether x is less than y and y is less than 3",
            "whether x is below y and y is below 3",
        ),
        ("x and y", "whether (x is true) and (y is true)", "whether (x is true) and (y is true)"),
        ("[x, 1]", "the list of x and 1", "the list of x and 1"),
        ("(x,)", "the tuple of x", "the tuple of x"),
        ("-(x * 2)", "the negative of (the product of x and 2)", "(x times 2) with its sign changed"),
        ("sum(xs, x)", "sum of xs and x", "sum applied to xs and x"),
        ("'a{}' in s", "whether 'a{}' is in s", "whether 'a{}' occurs in s"),
    ],
)
def test_an_expression_in_two_wordings(source: str, first: str, second: str) -> None:
    assert words(source, 0) == first
    assert words(source, 1) == second


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.sampled_from(sorted(FAMILIES)), st.integers(0, 10_000), st.sampled_from((0, 1)))
def test_different_mutants_have_different_descriptions(family: str, seed: int, wording: Wording) -> None:
    source, kinds = draw_expression(FAMILIES[family], Random(seed))
    expression = parse(source)
    assert isinstance(expression, Expression)
    texts = {ast.unparse(mutant.tree) for mutant in mutants(expression.tree, kinds)} | {source}
    assert len({words(text, wording, kinds) for text in texts}) == len(texts)


def test_what_is_no_expression_of_the_language_has_no_words() -> None:
    with pytest.raises(TypeError):
        describe(ast.parse("x.y", mode="eval").body, KINDS)
