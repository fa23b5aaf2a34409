"""Every operator makes the edit that its name says, and every edit can be undone."""

import ast
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loratrial.tasks.repair.families import FAMILIES, draw_expression
from loratrial.tasks.repair.kinds import Kinds, kind_of
from loratrial.tasks.repair.language import Expression, parse
from loratrial.tasks.repair.mutations import mutants, natural
from loratrial.tasks.repair.operators import OPERATORS

KINDS: Kinds = {"x": "int", "y": "int", "xs": "list", "ys": "list", "s": "str"}
EDITS = {
    "AOR": ("x + y", "x - y"),
    "ROR": ("x < y", "x == y"),
    "BND": ("x < y", "x <= y"),
    "LCR": ("x < 1 and y in xs", "x < 1 or y in xs"),
    "MNG": ("x in xs", "x not in xs"),
    "UOI": ("x + y", "x + -y"),
    "UOD": ("not (x < 1 or y < 2)", "x < 1 or y < 2"),
    "ABS": ("x - y", "abs(x - y)"),
    "ABD": ("abs(x) - y", "x - y"),
    "AOI": ("xs[0] * y", "(xs[0] + 1) * y"),
    "AOD": ("max(xs) - 1 < y", "max(xs) < y"),
    "CRP": ("x + 0", "x + -1"),
    "SVR": ("sum(xs) + x", "sum(ys) + x"),
    "CSR": ("x + y", "x + 3"),
    "SCR": ("x + 3", "x + y"),
    "ASW": ("x - y", "y - x"),
    "MMR": ("min(x, y, 2)", "max(x, y, 2)"),
    "FNR": ("sum(xs)", "len(xs)"),
    "SOI": ("xs[1:]", "sorted(xs)[1:]"),
    "SOD": ("sorted(xs + ys)[0]", "(xs + ys)[0]"),
    "CBS": ("x if x < y else 1", "1 if x < y else x"),
    "IDX": ("xs[0]", "xs[-1]"),
    "SBS": ("xs[1:3]", "xs[1:4]"),
    "SBI": ("xs[:2]", "xs[1:2]"),
    "SBD": ("xs[1:-1]", "xs[1:]"),
    "SSC": ("s[::2]", "s[::-1]"),
}


def tree_of(source: str) -> ast.expr:
    expression = parse(source)
    assert isinstance(expression, Expression)
    return expression.tree


def edits(tree: ast.expr, kinds: Kinds) -> set[tuple[str, str]]:
    return {(mutant.operator, ast.unparse(mutant.tree)) for mutant in mutants(tree, kinds)}


def test_the_table_has_a_case_for_every_operator() -> None:
    assert [operator.code for operator in OPERATORS] == list(EDITS)
    assert len({operator.title for operator in OPERATORS}) == len(OPERATORS)


@pytest.mark.parametrize("code", EDITS)
def test_an_operator_makes_its_edit(code: str) -> None:
    before, after = EDITS[code]
    assert (code, after) in edits(tree_of(before), KINDS)


@pytest.mark.parametrize(
    ("source", "edit"),
    [
        ("x + 1", ("UOI", "x + -1")),
        ("-3 + x", ("CRP", "-4 + x")),
        ("-3 + x", ("UOD", "3 + x")),
        ("s[1:]", ("SOI", "sorted(s)[1:]")),
        ("x + y", ("SVR", "x + xs")),
        ("xs[1]", ("CRP", "xs[2]")),
        ("x in xs", ("ROR", "x == xs")),
        ("s + 'a'", ("UOI", "-s + 'a'")),
    ],
)
def test_a_signed_number_is_one_piece_and_kinds_are_kept_apart(source: str, edit: tuple[str, str]) -> None:
    made = edits(tree_of(source), KINDS)
    assert (edit in made) == (edit == ("CRP", "-4 + x"))


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.sampled_from(sorted(FAMILIES)), st.integers(0, 10_000))
def test_an_expression_is_a_mutant_of_each_of_its_mutants(family: str, seed: int) -> None:
    source, kinds = draw_expression(FAMILIES[family], Random(seed))
    made = list(mutants(tree_of(source), kinds))
    for mutant in Random(seed).sample(made, 6):
        text = ast.unparse(mutant.tree)
        back = {back for _, back in edits(tree_of(text), kinds)}
        assert source in back, (mutant.operator, source, text)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(st.sampled_from(sorted(FAMILIES)), st.integers(0, 10_000))
def test_mutants_are_of_the_language_and_leave_the_original_alone(family: str, seed: int) -> None:
    source, kinds = draw_expression(FAMILIES[family], Random(seed))
    tree = tree_of(source)
    for mutant in mutants(tree, kinds):
        text = ast.unparse(mutant.tree)
        assert text != source
        assert ast.dump(tree_of(text)) == ast.dump(mutant.tree)
    assert ast.unparse(tree) == source


@pytest.mark.parametrize(
    "source",
    [
        "x + x",
        "x - 0",
        "x * 1",
        "0 * x",
        "2 + 3",
        "x < x",
        "1 < 2",
        "--x",
        "not not x",
        "abs(abs(x))",
        "min(x, x)",
        "max(x, 1, 2)",
        "x < 1 or x < 1",
        "x if x < y else x",
        "x if 1 else y",
    ],
)
def test_what_nobody_would_write_is_not_natural(source: str) -> None:
    assert not natural(tree_of(source))
    assert not natural(tree_of(f"len(xs) - ({source})"))


def test_every_expression_of_a_family_is_natural() -> None:
    random = Random(0)
    for family in FAMILIES.values():
        for _ in range(30):
            assert natural(tree_of(draw_expression(family, random)[0]))


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("x < y", "bool"),
        ("not x", "bool"),
        ("True", "bool"),
        ("-x", "int"),
        ("'a'", "str"),
        ("s[0]", "str"),
        ("s[1:]", "str"),
        ("s + 'a'", "str"),
        ("s * x", "str"),
        ("xs[0]", "int"),
        ("xs[1:]", "list"),
        ("xs * 2", "list"),
        ("[1, 2]", "list"),
        ("sorted(xs)", "list"),
        ("max(xs)", "int"),
        ("max(x, y)", "int"),
        ("min()", "other"),
        ("x - y", "int"),
        ("x if y else 2", "int"),
        ("x if y else s", "other"),
        ("x < 1 or y < 2", "bool"),
        ("nobody", "other"),
        ("(1, 2)", "other"),
        ("tuple(xs)", "other"),
    ],
)
def test_kinds_are_read_off_the_tree(source: str, kind: str) -> None:
    assert kind_of(tree_of(source), KINDS) == kind
