"""The evaluator gives what Python gives, or refuses; and nothing else ever comes out of it."""

import ast
import sys
import warnings
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from repair_expressions import INPUTS, draw

from loratrial.tasks.repair.evaluator import evaluate
from loratrial.tasks.repair.language import Expression, parse
from loratrial.tasks.repair.values import Limits, Refusal, Value, cells, same

KIND_OF = {
    TypeError: "type_error",
    ValueError: "value_error",
    IndexError: "index_error",
    ZeroDivisionError: "zero_division",
}
BOUNDS = {"too_big", "too_many_steps", "too_deep", "too_many_nodes", "too_long"}


def python_gives(source: str) -> Value | Refusal:
    """CPython's own answer, for expressions that this file made and the evaluator has walked to an end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return Value(eval(source, {}, dict(INPUTS)))
        except tuple(KIND_OF) as error:
            return Refusal(KIND_OF[type(error)], "")


def agrees_with_python(source: str) -> bool | None:
    """None when the language is narrower than Python here: a bound was met, or a form is not allowed."""
    ours = evaluate(source, INPUTS)
    if isinstance(ours, Refusal) and ours.kind in BOUNDS | {"not_allowed"}:
        return None
    theirs = python_gives(source)
    if isinstance(ours, Value) and isinstance(theirs, Value):
        return same(ours.value, theirs.value)
    return isinstance(ours, Refusal) and isinstance(theirs, Refusal) and ours.kind == theirs.kind


@settings(deadline=None, derandomize=True, max_examples=400)
@given(st.integers(0, 2**32), st.integers(0, 4))
def test_value_and_kind_of_error_are_those_of_python(seed: int, depth: int) -> None:
    source = draw(Random(seed), depth)
    assert agrees_with_python(source) is not False, source


def test_most_random_expressions_are_compared_and_every_kind_of_outcome_occurs() -> None:
    random = Random(1)
    sources = [draw(random, random.randrange(1, 5)) for _ in range(2_000)]
    verdicts = [agrees_with_python(source) for source in sources]
    assert False not in verdicts
    assert verdicts.count(True) > 1_800
    kinds = {getattr(evaluate(source, INPUTS), "kind", "value") for source in sources}
    assert kinds >= {"value", *KIND_OF.values(), "not_allowed"}


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.text(max_size=60) | st.text("()[]-+*<>=,:'\"if elsxnor1 \\", max_size=60))
def test_any_text_gives_a_typed_outcome(text: str) -> None:
    assert isinstance(evaluate(text, INPUTS), Value | Refusal)


plain = st.recursive(
    st.integers(-(2**70), 2**70) | st.booleans() | st.text("ab'\"\\\n\té", max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.lists(inner, max_size=4).map(tuple),
    max_leaves=12,
)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(plain)
def test_the_literal_of_a_value_is_read_back_as_that_value(value: object) -> None:
    outcome = evaluate(repr(value), {})
    assert isinstance(outcome, Value)
    assert same(outcome.value, value)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(plain, plain)
def test_values_are_the_same_exactly_when_their_literals_are(left: object, right: object) -> None:
    assert same(left, right) == (repr(left) == repr(right))


@pytest.mark.parametrize(
    ("left", "right"),
    [(1, True), (1, 1.0), (0, False), ([1], (1,)), ([[1]], [[True]]), ((1, [2]), (1, [2, 2])), ("1", 1)],
)
def test_equality_is_of_type_and_value_at_every_depth(left: object, right: object) -> None:
    assert not same(left, right)
    assert same(left, left)


def test_nothing_is_evaluated_past_what_decides() -> None:
    assert evaluate("x == 3 or 1 // 0", INPUTS) == Value(True)
    assert evaluate("y and t and 1 // 0", INPUTS) == Value("")
    assert evaluate("1 if xs else 1 // 0", INPUTS) == Value(1)
    assert evaluate("2 < 1 < 1 // 0", INPUTS) == Value(False)


def test_a_refusal_names_the_piece_of_source() -> None:
    assert evaluate("x + (y // 0)", INPUTS) == Refusal("zero_division", "y // 0")
    assert evaluate("'é' + s[9]", INPUTS) == Refusal("index_error", "s[9]")
    assert evaluate("x + nobody", INPUTS) == Refusal("name_error", "nobody")


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("x ** -1", "not_allowed"),
        ("0 ** -1", "zero_division"),
        ("'%d' % x", "not_allowed"),
        ("str(xs)", "not_allowed"),
        ("int('12', 3)", "not_allowed"),
        ("int('9' * 65)", "too_big"),
        ("sum(xs, '')", "type_error"),
        ("sum()", "type_error"),
        ("sum(['a', 'b'])", "type_error"),
        ("1 << 255 << 1", "too_big"),
        ("2 ** 128 * 2 ** 128", "too_big"),
        ("[0] * 2000", "too_big"),
        ("[[0] * 50] * 50", "too_big"),
        ("sum([[0] * 900], [0] * 1200)", "too_big"),
        ("([0] * 700 + [0] * 700) + [0] * 700", "too_big"),
        ("[[0] * 900, [0] * 900, [0] * 900]", "too_big"),
        ("(2 ** 254 + 2 ** 254) + (2 ** 254 + 2 ** 254)", "too_big"),
    ],
)
def test_where_the_language_is_narrower_it_refuses_by_name(source: str, kind: str) -> None:
    outcome = evaluate(source, INPUTS)
    assert isinstance(outcome, Refusal)
    assert outcome.kind == kind


def test_a_chain_of_small_operations_meets_the_bound_on_steps() -> None:
    source = " == ".join(["[xs] * 100"] * 30)
    assert evaluate(source, {"xs": [0] * 10}) == Refusal(
        "too_many_steps", "more than 20000 steps at " + source[:60]
    )


def test_narrower_limits_hold() -> None:
    assert evaluate("x * x", INPUTS, Limits(bits=3)) == Refusal("too_big", "x * x")
    assert evaluate("xs + xs", INPUTS, Limits(cells=9)) == Refusal("too_big", "xs + xs")
    assert evaluate("x + x + x", INPUTS, Limits(steps=6)).kind == "too_many_steps"  # type: ignore[union-attr]


def test_inputs_are_checked_like_sources() -> None:
    endless: list[object] = []
    endless.append(endless)

    class Sly(int):
        pass

    def kind(value: object) -> str:
        outcome = evaluate("x", {"x": value})
        return outcome.kind if isinstance(outcome, Refusal) else "value"

    deep: object = 1
    for _ in range(40):
        deep = [deep]
    assert kind(endless) == "too_deep"
    assert kind(deep) == "too_deep"
    assert kind([[1, 2], (True, "a")]) == "value"
    assert {kind(Sly(1)), kind(1.0), kind(None), kind({}), kind([b"a"])} == {"not_allowed"}
    assert {kind(2**300), kind("a" * 3000), kind([0] * 3000), kind([[0] * 900] * 3)} == {"too_big"}
    assert evaluate("1", {"len": 1}) == Refusal("not_allowed", "an input named as a function is")


def test_running_out_of_stack_is_an_outcome() -> None:
    expression = parse("-" * 20 + "x")
    assert isinstance(expression, Expression)

    def at_the_edge(frames: int) -> Value | Refusal:
        return evaluate(expression, {"x": 1}) if frames == 0 else at_the_edge(frames - 1)

    used = len(traceback_of_here())
    outcome = at_the_edge(sys.getrecursionlimit() - used - 15)
    assert outcome == Refusal("too_deep", "the stack is used up")


def traceback_of_here() -> list[object]:
    frame, frames = sys._getframe(), []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


def test_a_node_that_parsing_never_lets_in_is_refused_all_the_same() -> None:
    outcome = evaluate(Expression("x.y", ast.parse("x.y", mode="eval").body), INPUTS)
    assert outcome == Refusal("not_allowed", "x.y")


def test_the_size_of_a_value_counts_every_item_as_often_as_it_occurs() -> None:
    inner = ["ab", 1]
    assert cells(inner) == 1 + 3 + 1
    assert cells([inner, inner]) == 1 + 5 + 5
    assert cells(()) == 1
