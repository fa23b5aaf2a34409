"""The kind of value that an expression makes, as far as its tree shows it.

Enough to keep mutations sensible (no variable of another kind, no `sorted` around a number) and descriptions
right (`+` is a sum for numbers and a joining for strings). It guesses nothing: what it cannot see is `other`.
"""

import ast
from collections.abc import Mapping
from typing import Literal

KindName = Literal["int", "bool", "str", "list", "other"]
Kinds = Mapping[str, KindName]
"""The kind of every input of an expression, by name; a list is one of integers."""

_RESULTS: Mapping[str, KindName] = {
    "abs": "int",
    "all": "bool",
    "any": "bool",
    "bool": "bool",
    "int": "int",
    "len": "int",
    "list": "list",
    "sorted": "list",
    "str": "str",
    "sum": "int",
}


def kind_of(node: ast.expr, kinds: Kinds) -> KindName:
    """The kind of `node`'s value, given the kinds of the inputs."""
    match node:
        case ast.Constant(value=bool()) | ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return "bool"
        case ast.Constant(value=int()):
            return "int"
        case ast.Constant(value=str()):
            return "str"
        case ast.Name(id=name):
            return kinds.get(name, "other")
        case ast.List():
            return "list"
        case ast.UnaryOp():
            return "int"
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult(), right=right):
            return _wider(kind_of(left, kinds), kind_of(right, kinds))
        case ast.BinOp():
            return "int"
        case ast.BoolOp(values=values):
            return _common([kind_of(value, kinds) for value in values])
        case ast.IfExp(body=body, orelse=orelse):
            return _common([kind_of(body, kinds), kind_of(orelse, kinds)])
        case ast.Subscript(value=base, slice=index):
            kind = kind_of(base, kinds)
            return "int" if kind == "list" and not isinstance(index, ast.Slice) else kind
        case ast.Call(func=ast.Name(id="min" | "max"), args=args):
            kind = kind_of(args[0], kinds) if args else "other"
            return "int" if kind == "list" and len(args) == 1 else kind
        case ast.Call(func=ast.Name(id=name)):
            return _RESULTS.get(name, "other")
    return "other"


def _wider(left: KindName, right: KindName) -> KindName:
    """Of `+` and `*`: the sequence, if one side is; the number otherwise."""
    return next((kind for kind in (left, right) if kind in ("str", "list", "other")), "int")


def _common(found: list[KindName]) -> KindName:
    return found[0] if len(set(found)) == 1 else "other"
