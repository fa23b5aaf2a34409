"""Hostile sources are refused quickly, in little memory, by name."""

import time
import tracemalloc

import pytest

from loratrial.tasks.repair.evaluator import evaluate
from loratrial.tasks.repair.language import Expression, parse
from loratrial.tasks.repair.values import Limits, Refusal

INPUTS = {"x": 3, "y": 2, "xs": list(range(49))}
HOSTILE = {
    "too_long": [
        "(" * 5_000,
        "-" * 100_000 + "1",
        "1" * 1_000_000,
        "[" * 500_000 + "]" * 500_000,
        "1<" * 100_000 + "1",
        "x" * 1_001,
        "'" + "\ud800" * 2_000 + "'",
        "0" * 5_000,
    ],
    "too_many_nodes": ["-" * 900 + "1", "[" + "1," * 450 + "]", "[" + "x+x," * 90 + "]", "1<" * 200 + "1"],
    "too_deep": [
        "-" * 390 + "1",
        "not " * 240 + "1",
        "(" * 400 + ")" * 400,
        "[" * 33 + "]" * 33,
        "(1," * 40 + ")" * 40,
        "x[" * 100 + "0" + "]" * 100,
        "1 if 1 else " * 60 + "1",
        "1+" * 40 + "1",
        "2**" * 60 + "2",
    ],
    "too_big": [
        "1" * 999,
        "9**9**9**9",
        "2**300",
        "1<<10**9",
        "1<<1000",
        "[0]*10**9",
        "10**9*'a'",
        "'a'*9**9",
        "[[0]*999]*999",
        "sum([[xs]*30,[xs]*30,[xs]*30],[])",
        "('a'*900+'b')*3",
        "int('9'*400)",
        "-(10**77)*-(10**77)",
        "xs[::-1]*60",
        "sorted([xs]*30+[xs]*30)",
    ],
    "too_many_steps": [
        "+".join(["max(xs*30)"] * 8),
        "[" + "len(xs*39)," * 40 + "]",
        " == ".join(["[xs]*39"] * 30),
    ],
    "syntax": ["", "   ", "1 1", "x if y", "*x", "x<>y", "(", "1 +", "1 if 1 if " * 60, "x x", "[1", "xs[]"],
    "not_allowed": [
        "x.y",
        "(1).__class__",
        "xs.append(1)",
        "[i for i in xs]",
        "(i for i in xs)",
        "lambda: 1",
        "f'{x}'",
        "b'a'",
        "r'a'",
        "u'a'",
        "'''a'''",
        "'a''b'",
        "'\\x41'",
        "(y:=1)",
        "max(*xs)",
        "max(**xs)",
        "[*xs]",
        "__import__('os')",
        "_x",
        "x\0",
        "'\0'",
        "\ud800",
        "'\ud800'",
        "ｘ",
        "print(1)",
        "len",
        "len(len)",
        "xs[0](1)",
        "(len)(xs)(1)",
        "None",
        "...",
        "1.0",
        "1e9",
        "1j",
        "0x" + "f" * 900,
        "1_000",
        "01",
        "x=1",
        "1;1",
        "1#",
        "1\n",
        "x@y",
        "x/y",
        "await x",
        "yield",
        "{1}",
        "{}",
        "x is x",
        "sorted(xs,reverse=True)",
        "'a'%1",
        "'%9999999d'%1",
        "xs[1:2,3]",
        "assert x",
    ],
    "type_error": ["xs[1,2]", "xs['a']", "xs+x", "len(1)", "x[0]", "-'a'", "sum(xs,'')"],
    "value_error": ["xs[::0]", "1<<-1", "int('a')", "min([])"],
    "name_error": ["x" * 1_000, "nobody"],
}
CASES = [(kind, source) for kind, sources in HOSTILE.items() for source in sources]


@pytest.mark.parametrize(
    ("kind", "source"), CASES, ids=[f"{kind}-{number}" for number, (kind, _) in enumerate(CASES)]
)
def test_a_hostile_source_is_refused_by_name_within_time_and_memory(kind: str, source: str) -> None:
    def seconds() -> float:
        start = time.perf_counter()
        evaluate(source, INPUTS)
        return time.perf_counter() - start

    assert min(seconds() for _ in range(3)) < 0.05
    tracemalloc.start()
    outcome = evaluate(source, INPUTS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(outcome, Refusal)
    assert outcome.kind == kind
    assert peak < 20e6


def test_length_is_checked_before_a_single_token_is_read() -> None:
    assert parse("\0" * 2_000) == Refusal("too_long", "2000 characters, at most 1000")


def test_every_form_of_the_language_is_read() -> None:
    source = (
        "[-x ** 2 + ~y // 1 % 2 << 1 >> 1 & 3 | 4 ^ 5, (1,), 'it\\'s', \"q\", True] if not x < y <= 3 != 4 "
        "and x in xs or y not in xs else sorted(xs)[1:-1:2][0]"
    )
    expression = parse(f"  {source} ")
    assert isinstance(expression, Expression)
    assert expression.source == source


def test_limits_are_exact() -> None:
    assert isinstance(parse("x+x", Limits(characters=3, tokens=3, nodes=3, depth=2)), Expression)
    assert parse("x+x", Limits(characters=2)) == Refusal("too_long", "3 characters, at most 2")
    assert parse("x+x", Limits(tokens=2)) == Refusal("too_many_nodes", "more than 2 tokens")
    assert parse("x+x", Limits(nodes=2)) == Refusal("too_many_nodes", "more than 2 nodes")
    assert parse("x+x", Limits(depth=1)) == Refusal("too_deep", "nested more than 1 deep")
    assert parse("((x))", Limits(depth=1)) == Refusal("too_deep", "brackets nested more than 1 deep")
    assert parse("15", Limits(bits=3)) == Refusal("too_big", "an integer of 4 bits")


@pytest.mark.parametrize("error", [RecursionError, MemoryError, OverflowError])
def test_a_parser_that_gives_up_is_an_outcome(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def give_up(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr("loratrial.tasks.repair.language.ast.parse", give_up)
    assert parse("x") == Refusal("too_deep", "the parser gave up")
