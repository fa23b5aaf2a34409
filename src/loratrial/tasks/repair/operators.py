"""The table of mutation operators: the small edits that break an expression, and that undo each other.

Names follow the mutation-testing literature where it has them (AOR, ROR, LCR, UOI, UOD, ABS, CRP, SVR, CSR,
SCR; King and Offutt, "A Fortran language system for mutation-based software testing", 1991) and are ours for
what Python adds: slices, membership, conditional expressions, `sorted`.

Every edit has an inverse in the table: if m is a mutant of e, e is a mutant of m. Generation needs this. It
takes four mutants of one broken expression and lets chance say which is right; an operator without an inverse
would make candidates that never can be right. So deletions (SDL and its kin) are here only in pairs.
"""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from loratrial.tasks.repair.kinds import Kinds, kind_of
from loratrial.tasks.repair.trees import call, calls, changed, constant, number

Rule = Callable[[ast.expr, Kinds], Iterator[ast.expr]]


@dataclass(frozen=True)
class Operator:
    """One operator: its code, what it does in words, and its edits of a single node."""

    code: str
    title: str
    rule: Rule


_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_RELATIONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_BOUNDARY: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
_SCALARS = range(4)
_STEPS = (None, 2, -1)
_SUMMARIES = ("sum", "max", "min", "len")


def _aor(node: ast.expr, kinds: Kinds) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
        for op in _ARITHMETIC:
            if not isinstance(node.op, op):
                yield changed(node, op=op())


def _compare(node: ast.expr, to: Callable[[type[ast.cmpop]], list[type[ast.cmpop]]]) -> Iterator[ast.expr]:
    if isinstance(node, ast.Compare):
        for place, old in enumerate(node.ops):
            for new in to(type(old)):
                yield changed(node, ops=[*node.ops[:place], new(), *node.ops[place + 1 :]])


def _ror(node: ast.expr, kinds: Kinds) -> Iterator[ast.expr]:
    def others(old: type[ast.cmpop]) -> list[type[ast.cmpop]]:
        if old not in _RELATIONS:
            return []
        return [new for new in _RELATIONS if new is not old and new is not _BOUNDARY.get(old)]

    return _compare(node, others)


def _bnd(node: ast.expr, kinds: Kinds) -> Iterator[ast.expr]:
    return _compare(node, lambda old: [_BOUNDARY[old]] if old in _BOUNDARY else [])


def _mng(node: ast.expr, kinds: Kinds) -> Iterator[ast.expr]:
    swapped: Mapping[type[ast.cmpop], type[ast.cmpop]] = {ast.In: ast.NotIn, ast.NotIn: ast.In}
    return _compare(node, lambda old: [swapped[old]] if old in swapped else [])


def _lcr(node: ast.expr, kinds: Kinds) -> Iterator[ast.expr]:
    if isinstance(node, ast.BoolOp):
        yield changed(node, op=ast.And() if isinstance(node.op, ast.Or) else ast.Or())


def _unsigned(node: ast.expr, kinds: Kinds) -> ast.unaryop | None:
    """The unary operator that may stand before a node: a sign, `not`, or none."""
    if number(node) is not None or isinstance(node, ast.UnaryOp):
        return None
    if isinstance(node, ast.BoolOp | ast.Compare) and kind_of(node, kinds) == "bool":
        return ast.Not()
    return ast.USub() if kind_of(node, kinds) == "int" else None


def _uoi(node: ast.expr, kinds: Kinds) -> Iterator[ast.expr]:
    op = _unsigned(node, kinds)
    if op is not None:
        yield ast.UnaryOp(op, node)


def _uod(node: ast.expr, kinds: Kinds) -> Iterator[ast.expr]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, type(_unsigned(node.operand, kinds))):
        yield node.operand


def _countable(node: ast.expr, kinds: Kinds) -> bool:
    """Whether a node is an integer that is neither a number written out nor an `abs` already."""
    return kind_of(node, kinds) == "int" and number(node) is None and not calls(node, "abs")


def _abs(node: ast.expr, kinds: Kinds) -> Iterator[ast.expr]:
    if _countable(node, kinds):
        yield call("abs", node)


def _abd(node: ast.expr, kinds: Kinds) -> Iterator[ast.expr]:
    match node:
        case ast.Call(func=ast.Name(id="abs"), args=[inner]) if _countable(inner, kinds):
            yield inner


def _incremented(node: ast.expr, kinds: Kinds) -> bool:
    return isinstance(node, ast.Name | ast.Call | ast.Subscript) and kind_of(node, kinds) == "int"


def _aoi(node: ast.expr, kinds: Kinds) -> Iterator[ast.expr]:
    if _incremented(node, kinds):
        yield ast.BinOp(node, ast.Add(), ast.Constant(1))
        yield ast.BinOp(node, ast.Sub(), ast.Constant(1))


def _aod(node: ast.expr, kinds: Kinds) -> Iterator[ast.expr]:
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=ast.Constant(value=1)):
            if _incremented(left, kinds):
                yield left


def _crp(node: ast.expr, kinds: Kinds) -> Iterator[ast.expr]:
    value = number(node)
    if value is not None:
        yield constant(value + 1)
        yield constant(value - 1)


def _svr(node: ast.expr, kinds: Kinds) -> Iterator[ast.expr]:
    if isinstance(node, ast.Name):
        for name, kind in kinds.items():
            if name != node.id and kind == kinds.get(node.id):
                yield ast.Name(name, ast.Load())


def _csr(node: ast.expr, kinds: Kinds) -> Iterator[ast.expr]:
    if isinstance(node, ast.Name) and kinds.get(node.id) == "int":
        yield from map(constant, _SCALARS)


def _scr(node: ast.expr, kinds: Kinds) -> Iterator[ast.expr]:
    if number(node) in _SCALARS:
        yield from (ast.Name(name, ast.Load()) for name, kind in kinds.items() if kind == "int")


def _asw(node: ast.expr, kinds: Kinds) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp):
        yield changed(node, left=node.right, right=node.left)


def _named(node: ast.expr, group: tuple[str, ...], kinds: Kinds) -> Iterator[ast.expr]:
    match node:
        case ast.Call(func=ast.Name(id=old), args=[only]) if old in group and kind_of(only, kinds) == "list":
            yield from (call(new, only) for new in group if new != old and {new, old} != {"min", "max"})


def _mmr(node: ast.expr, kinds: Kinds) -> Iterator[ast.expr]:
    match node:
        case ast.Call(func=ast.Name(id="min" | "max" as old), args=args):
            yield call("max" if old == "min" else "min", *args)


def _fnr(node: ast.expr, kinds: Kinds) -> Iterator[ast.expr]:
    yield from _named(node, _SUMMARIES, kinds)
    yield from _named(node, ("any", "all"), kinds)


def _unsorted(node: ast.expr, kinds: Kinds) -> bool:
    return kind_of(node, kinds) == "list" and not calls(node, "sorted")


def _soi(node: ast.expr, kinds: Kinds) -> Iterator[ast.expr]:
    if _unsorted(node, kinds):
        yield call("sorted", node)


def _sod(node: ast.expr, kinds: Kinds) -> Iterator[ast.expr]:
    match node:
        case ast.Call(func=ast.Name(id="sorted"), args=[inner]) if _unsorted(inner, kinds):
            yield inner


def _cbs(node: ast.expr, kinds: Kinds) -> Iterator[ast.expr]:
    if isinstance(node, ast.IfExp):
        yield changed(node, body=node.orelse, orelse=node.body)


def _idx(node: ast.expr, kinds: Kinds) -> Iterator[ast.expr]:
    if isinstance(node, ast.Subscript):
        index = number(node.slice)
        if index is not None:
            yield changed(node, slice=constant(index + 1))
            yield changed(node, slice=constant(index - 1))


def _bounds(node: ast.expr, edit: Callable[[str, int | None], tuple[int | None, ...]]) -> Iterator[ast.expr]:
    """Every slice with one bound, or its step, replaced by each of `edit(which, what it is)`."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        for which in ("lower", "upper", "step"):
            old = cast(ast.expr | None, getattr(node.slice, which))
            if old is None or number(old) is not None:
                for new in edit(which, number(old)):
                    bound = None if new is None else constant(new)
                    yield changed(node, slice=changed(node.slice, **{which: bound}))


def _sbs(node: ast.expr, kinds: Kinds) -> Iterator[ast.expr]:
    return _bounds(node, lambda which, old: () if old is None or which == "step" else (old + 1, old - 1))


def _sbi(node: ast.expr, kinds: Kinds) -> Iterator[ast.expr]:
    edges = {"lower": (1,), "upper": (-1,), "step": ()}
    return _bounds(node, lambda which, old: edges[which] if old is None else ())


def _sbd(node: ast.expr, kinds: Kinds) -> Iterator[ast.expr]:
    edges = {"lower": 1, "upper": -1}
    return _bounds(node, lambda which, old: (None,) if old is not None and old == edges.get(which) else ())


def _ssc(node: ast.expr, kinds: Kinds) -> Iterator[ast.expr]:
    def others(which: str, old: int | None) -> tuple[int | None, ...]:
        return tuple(new for new in _STEPS if new != old) if which == "step" and old in _STEPS else ()

    return _bounds(node, others)


OPERATORS: tuple[Operator, ...] = (
    Operator("AOR", "arithmetic operator replacement", _aor),
    Operator("ROR", "relational operator replacement", _ror),
    Operator("BND", "boundary shift: strict and non-strict comparison", _bnd),
    Operator("LCR", "logical connector replacement", _lcr),
    Operator("MNG", "membership negation", _mng),
    Operator("UOI", "unary operator insertion", _uoi),
    Operator("UOD", "unary operator deletion", _uod),
    Operator("ABS", "absolute value insertion", _abs),
    Operator("ABD", "absolute value deletion", _abd),
    Operator("AOI", "increment or decrement insertion", _aoi),
    Operator("AOD", "increment or decrement deletion", _aod),
    Operator("CRP", "constant replacement by a neighbour", _crp),
    Operator("SVR", "variable replacement", _svr),
    Operator("CSR", "constant for variable replacement", _csr),
    Operator("SCR", "variable for constant replacement", _scr),
    Operator("ASW", "operand swap", _asw),
    Operator("MMR", "min and max replacement", _mmr),
    Operator("FNR", "function replacement", _fnr),
    Operator("SOI", "sorting insertion", _soi),
    Operator("SOD", "sorting deletion", _sod),
    Operator("CBS", "conditional branch swap", _cbs),
    Operator("IDX", "index shift", _idx),
    Operator("SBS", "slice bound shift", _sbs),
    Operator("SBI", "slice bound insertion", _sbi),
    Operator("SBD", "slice bound deletion", _sbd),
    Operator("SSC", "slice step change", _ssc),
)
"""The table of operators, in the order in which they are tried."""
