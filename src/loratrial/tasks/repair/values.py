"""The values of the expression language: what may be one, how large it is, and when two are the same.

Integers, booleans, strings, lists and tuples, and nothing else: no float, no None, no mapping. Equality here
is of type and value together, since a repair that turns `1` into `True` has changed the program.
"""

from dataclasses import dataclass
from typing import Any, Literal, cast

Plain = int | bool | str | list["Plain"] | tuple["Plain", ...]

Kind = Literal[
    "too_long",
    "syntax",
    "not_allowed",
    "too_deep",
    "too_many_nodes",
    "too_many_steps",
    "too_big",
    "name_error",
    "type_error",
    "value_error",
    "index_error",
    "zero_division",
]
"""Why an expression has no value: seven rules of the language, then five errors of Python's own."""


@dataclass(frozen=True)
class Limits:
    """The bounds on one expression. Each is checked before the work that it bounds is done."""

    characters: int = 1_000
    """Length of the source, before it is parsed."""
    tokens: int = 400
    nodes: int = 250
    depth: int = 32
    """Of brackets in the source, of the parsed tree, and of nested values."""
    steps: int = 20_000
    """Nodes walked plus cells touched by operations."""
    bits: int = 256
    """Of any integer, before `**`, `<<` and `*` compute it."""
    cells: int = 2_000
    """Size of any value, before `*`, `+` and `sum` build it (see `cells`)."""


LIMITS = Limits()


@dataclass(frozen=True)
class Value:
    """The expression has this value."""

    value: Plain


@dataclass(frozen=True)
class Refusal:
    """The expression has no value: `kind` names the rule, `where` the piece of source or the reason."""

    kind: Kind
    where: str


Outcome = Value | Refusal


class RefusedError(Exception):
    """Carries a refusal out of a walk; never leaves this package."""

    def __init__(self, kind: Kind, where: str) -> None:
        super().__init__(kind, where)
        self.refusal = Refusal(kind, where)


def same(left: object, right: object) -> bool:
    """Whether two values agree in type and value at every depth: `1`, `True` and `1.0` all differ, and so do
    `[1]` and `(1,)`."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


def cells(value: Plain) -> int:
    """The size of a value: 1 for a number, 1 + its length for a string, and 1 + the sizes of its items for a
    list or tuple, an item counted as often as it occurs."""
    if isinstance(value, int):
        return 1
    if isinstance(value, str):
        return 1 + len(value)
    return 1 + sum(map(cells, value))


def admit(value: Any, limits: Limits = LIMITS) -> Plain:
    """`value` itself, if it is of the language and within the bounds; raises `RefusedError` otherwise.
    Safe on any object: on lists that hold themselves, and on subclasses."""
    seen, waiting = 0, [(value, 1)]
    while waiting:
        part, depth = waiting.pop()
        seen += 1
        if type(part) in (int, bool):
            if part.bit_length() > limits.bits:
                raise RefusedError("too_big", f"an integer of {part.bit_length()} bits")
        elif type(part) in (list, tuple):
            seen += len(part)
            if depth > limits.depth:
                raise RefusedError("too_deep", f"values nested more than {limits.depth} deep")
            if seen <= limits.cells:
                waiting += [(item, depth + 1) for item in part]
                seen -= len(part)
        elif type(part) is str:
            seen += len(part)
        else:
            raise RefusedError("not_allowed", f"a value of type {type(part).__name__}")
        if seen > limits.cells:
            raise RefusedError("too_big", f"a value of more than {limits.cells} cells")
    return cast(Plain, value)
