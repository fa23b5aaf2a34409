"""Every expression that is one edit away from a given one, and which of them read naturally.

The edits themselves are in `operators`. Nothing here asks whether a mutant behaves differently: that is for
the inputs to show.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from loratrial.tasks.repair.kinds import Kinds
from loratrial.tasks.repair.operators import OPERATORS
from loratrial.tasks.repair.trees import changed, number


@dataclass(frozen=True)
class Mutant:
    """An expression that is one edit away; `operator` is the code of the edit."""

    operator: str
    tree: ast.expr


def mutants(tree: ast.expr, kinds: Kinds) -> Iterator[Mutant]:
    """Every expression that is one edit away from `tree`, in a fixed order, equivalent ones included. Trees
    share their unchanged parts: they are never edited in place."""
    for operator in OPERATORS:
        for edited in operator.rule(tree, kinds):
            yield Mutant(operator.code, edited)
    for field, place, child in _slots(tree):
        for mutant in mutants(child, kinds):
            yield Mutant(mutant.operator, _with_child(tree, field, place, mutant.tree))


def natural(tree: ast.expr) -> bool:
    """Whether an expression reads as something that a person might have written: nothing compared with or
    added to itself, no sign on a sign, no adding of 0, no part without a variable but a plain number."""
    return all(_natural(node) for node in ast.walk(tree) if isinstance(node, ast.expr))


def _slots(node: ast.expr) -> Iterator[tuple[str, int | None, ast.expr]]:
    """The children that edits descend into. A signed number is one piece; indices and slice bounds have edits
    of their own."""
    if number(node) is not None:
        return
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.expr) and field not in ("func", "slice"):
            yield field, None, value
        elif isinstance(value, list):
            for place, item in enumerate(value):
                if isinstance(item, ast.expr):
                    yield field, place, item


def _with_child(node: ast.expr, field: str, place: int | None, child: ast.expr) -> ast.expr:
    if place is None:
        return changed(node, **{field: child})
    items = list(getattr(node, field))
    items[place] = child
    return changed(node, **{field: items})


def _natural(node: ast.expr) -> bool:
    match node:
        case ast.UnaryOp(operand=ast.UnaryOp()):
            return False
        case ast.Call(func=ast.Name(id=outer), args=[ast.Call(func=ast.Name(id=inner))]) if outer == inner:
            return False
        case ast.BinOp(left=left, op=op, right=right):
            idle = {0} if isinstance(op, ast.Add | ast.Sub) else {0, 1}
            return not idle & {number(left), number(right)} and _differ(left, right)
        case ast.Compare(left=left, comparators=[right]):
            return _differ(left, right)
        case ast.BoolOp(values=parts) | ast.Call(args=parts) if len(parts) > 1:
            return len({ast.unparse(part) for part in parts}) == len(parts) and sum(map(_fixed, parts)) < 2
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return not _fixed(test) and ast.dump(body) != ast.dump(orelse)
    return True


def _differ(left: ast.expr, right: ast.expr) -> bool:
    """Whether two sides are not the same, and not both plain numbers."""
    return not (_fixed(left) and _fixed(right)) and ast.dump(left) != ast.dump(right)


def _fixed(node: ast.expr) -> bool:
    return number(node) is not None
