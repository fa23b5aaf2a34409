"""Small helpers for expression trees: numbers with their sign, and edits that leave the original alone."""

import ast


def number(node: ast.expr | None) -> int | None:
    """The integer that a node writes, a sign in front of it included; None for anything else."""
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
            return -value
    return None


def constant(value: int) -> ast.expr:
    """The node that writes an integer; a negative one is a sign and a number, as Python parses it."""
    node = ast.Constant(abs(value))
    return node if value >= 0 else ast.UnaryOp(ast.USub(), node)


def call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def calls(node: ast.expr, name: str) -> bool:
    """Whether a node is a call of the function `name`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def changed(node: ast.expr, **changes: object) -> ast.expr:
    """A copy of one node with some fields replaced; the other children are shared."""
    return type(node)(**{**dict(ast.iter_fields(node)), **changes})
