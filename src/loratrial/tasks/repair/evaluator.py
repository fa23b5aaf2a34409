"""Walking one expression to its value, within bounds, executing nothing.

The only functions ever called are those in the tables below, on values that `values.admit` lets in. Whatever
could grow is measured before it is built. Where the language and CPython both give an answer, it is the same
answer; where the language is narrower (negative powers, `%` on a string, `str` of a list) it refuses.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any, cast

from loratrial.tasks.repair.language import FUNCTIONS, Expression, parse
from loratrial.tasks.repair.values import (
    LIMITS,
    Kind,
    Limits,
    Outcome,
    Plain,
    Refusal,
    RefusedError,
    Value,
    admit,
    cells,
)

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, items: item in items,
    ast.NotIn: lambda item, items: item not in items,
}
_CALLS: Mapping[str, Callable[..., Any]] = {
    "abs": abs,
    "all": all,
    "any": any,
    "bool": bool,
    "int": int,
    "len": len,
    "list": list,
    "max": max,
    "min": min,
    "sorted": sorted,
    "str": str,
    "tuple": tuple,
}
_ERRORS: tuple[tuple[type[Exception], Kind], ...] = (
    (ZeroDivisionError, "zero_division"),
    (OverflowError, "too_big"),
    (IndexError, "index_error"),
    (TypeError, "type_error"),
    (ValueError, "value_error"),
)


def evaluate(expression: Expression | str, inputs: Mapping[str, object], limits: Limits = LIMITS) -> Outcome:
    """The value of an expression for named inputs, or the refusal that says why it has none.

    A string is parsed first. Raises nothing: running out of stack or memory is an outcome too.
    """
    parsed = parse(expression, limits) if isinstance(expression, str) else expression
    if isinstance(parsed, Refusal):
        return parsed
    try:
        names = {name: admit(value, limits) for name, value in inputs.items()}
        if not FUNCTIONS.isdisjoint(names):
            raise RefusedError("not_allowed", "an input named as a function is")
        return Value(_Walk(parsed.source, names, limits).value(parsed.tree))
    except RefusedError as refused:
        return refused.refusal
    except RecursionError:
        return Refusal("too_deep", "the stack is used up")
    except MemoryError:
        return Refusal("too_big", "the memory is used up")


class _Walk:
    """One evaluation: the inputs, and the steps that are left."""

    def __init__(self, source: str, names: Mapping[str, Plain], limits: Limits) -> None:
        self.source = source.encode()
        self.names = names
        self.limits = limits
        self.steps = limits.steps

    def value(self, node: ast.expr) -> Plain:
        self.steps -= 1
        walk = _WALKS.get(type(node))
        if self.steps < 0:
            self.spend(0, node)
        if walk is None:
            raise RefusedError("not_allowed", self.text(node))
        return walk(self, node)

    def constant(self, node: ast.Constant) -> Plain:
        return cast(Plain, node.value)

    def name(self, node: ast.Name) -> Plain:
        if node.id not in self.names:
            raise RefusedError("name_error", node.id[:40])
        return self.names[node.id]

    def list_display(self, node: ast.List) -> Plain:
        return self.fitting([self.value(item) for item in node.elts], node)

    def tuple_display(self, node: ast.Tuple) -> Plain:
        return self.fitting(tuple([self.value(item) for item in node.elts]), node)

    def unary(self, node: ast.UnaryOp) -> Plain:
        return self.native(node, _UNARY[type(node.op)], self.value(node.operand))

    def binary(self, node: ast.BinOp) -> Plain:
        return self.combine(node, type(node.op), self.value(node.left), self.value(node.right))

    def conditional(self, node: ast.IfExp) -> Plain:
        return self.value(node.body if self.value(node.test) else node.orelse)

    def subscript(self, node: ast.Subscript) -> Plain:
        base, index = self.value(node.value), node.slice
        if not isinstance(index, ast.Slice):
            return self.native(node, operator.getitem, base, self.value(index))
        parts = (index.lower, index.upper, index.step)
        bounds = [None if part is None else self.value(part) for part in parts]
        return self.native(node, lambda items: items[slice(*bounds)], base)

    def boolean(self, node: ast.BoolOp) -> Plain:
        stop_at = isinstance(node.op, ast.Or)
        for part in node.values[:-1]:
            value = self.value(part)
            if bool(value) is stop_at:
                return value
        return self.value(node.values[-1])

    def comparison(self, node: ast.Compare) -> Plain:
        left = self.value(node.left)
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = self.value(part)
            if not self.native(node, _COMPARE[type(op)], left, right):
                return False
            left = right
        return True

    def combine(self, node: ast.expr, op: type[ast.operator], left: Plain, right: Plain) -> Plain:
        if isinstance(left, int) and isinstance(right, int):
            if op is ast.Pow and right < 0 and left != 0:
                raise RefusedError("not_allowed", f"a negative power: {self.text(node)}")
            if _bits(op, left, right) > self.limits.bits:
                raise RefusedError("too_big", self.text(node))
        elif op is ast.Mod and isinstance(left, str):
            raise RefusedError("not_allowed", f"formatting a string: {self.text(node)}")
        elif _growth(op, left, right) > self.limits.cells:
            raise RefusedError("too_big", self.text(node))
        return self.native(node, _BINARY[op], left, right)

    def call(self, node: ast.Call) -> Plain:
        name, args = cast(ast.Name, node.func).id, [self.value(arg) for arg in node.args]
        if name == "sum":
            return self.total(node, args)
        if name == "int" and len(args) > 1:
            raise RefusedError("not_allowed", f"int with a base: {self.text(node)}")
        if name == "int" and args and isinstance(args[0], str) and 4 * len(args[0]) > self.limits.bits:
            raise RefusedError("too_big", self.text(node))
        if name == "str" and args and isinstance(args[0], list | tuple):
            raise RefusedError("not_allowed", f"str of a sequence: {self.text(node)}")
        return self.native(node, _CALLS[name], *args)

    def total(self, node: ast.expr, args: list[Plain]) -> Plain:
        """Adds one by one, each addition measured: adding up lists would otherwise copy without bound."""
        starts_with_text = len(args) == 2 and isinstance(args[1], str)
        if not 1 <= len(args) <= 2 or isinstance(args[0], int) or starts_with_text:
            raise RefusedError("type_error", self.text(node))
        total = args[1] if len(args) == 2 else 0
        for item in args[0]:
            total = self.combine(node, ast.Add, total, item)
        return total

    def native(self, node: ast.expr, function: Callable[..., Any], *values: Plain) -> Plain:
        """Calls one function of the tables, paying for the size of what it reads and makes."""
        self.spend(sum(map(cells, values)), node)
        try:
            return self.fitting(function(*values), node)
        except tuple(error for error, _ in _ERRORS) as raised:
            kind = next(kind for error, kind in _ERRORS if isinstance(raised, error))
            raise RefusedError(kind, self.text(node)) from None

    def fitting(self, value: Plain, node: ast.expr) -> Plain:
        size = cells(value)
        wide = isinstance(value, int) and value.bit_length() > self.limits.bits
        if wide or size > self.limits.cells:
            raise RefusedError("too_big", self.text(node))
        self.spend(size, node)
        return value

    def spend(self, steps: int, node: ast.expr) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise RefusedError("too_many_steps", f"more than {self.limits.steps} steps at {self.text(node)}")

    def text(self, node: ast.expr) -> str:
        """The piece of source that a node was read from, 60 characters of it at most."""
        return self.source[node.col_offset : node.end_col_offset].decode(errors="replace")[:60]


_WALKS: Mapping[type[ast.expr], Callable[[_Walk, Any], Plain]] = {
    ast.Constant: _Walk.constant,
    ast.Name: _Walk.name,
    ast.List: _Walk.list_display,
    ast.Tuple: _Walk.tuple_display,
    ast.UnaryOp: _Walk.unary,
    ast.BinOp: _Walk.binary,
    ast.BoolOp: _Walk.boolean,
    ast.Compare: _Walk.comparison,
    ast.IfExp: _Walk.conditional,
    ast.Call: _Walk.call,
    ast.Subscript: _Walk.subscript,
}


def _bits(op: type[ast.operator], left: int, right: int) -> int:
    """An upper bound on the bits of the result, computed without computing it."""
    if op is ast.Mult:
        return left.bit_length() + right.bit_length()
    if op is ast.Pow and abs(left) > 1:
        return left.bit_length() * right
    if op is ast.LShift and left != 0 and right > 0:
        return left.bit_length() + right
    return 0


def _growth(op: type[ast.operator], left: Plain, right: Plain) -> int:
    """An upper bound on the cells of a sequence that `+` or `*` would build."""
    if op is ast.Add:
        return cells(left) + cells(right)
    if op is ast.Mult and isinstance(right, int):
        return cells(left) * max(right, 0)
    if op is ast.Mult and isinstance(left, int):
        return max(left, 0) * cells(right)
    return 0
