"""Reading one expression of the repair language, or refusing it by name.

The language is a small part of Python's: integers, booleans, strings, lists, tuples; arithmetic, bitwise,
comparison, membership and boolean operators; conditional expressions; indexing and slicing; calls of a few
pure functions. Text is checked three times, each time against a list of what is allowed: its length, its
tokens, its tree. The tokens are checked before Python's parser sees the text, because that parser can itself
be driven out of memory or stack by a hostile source. `ast.parse` only builds a tree; nothing is compiled.

Left out on purpose: attributes, floats, keyword and star arguments, comprehensions, lambdas, f-strings,
assignment, and every token that the parts above do not need.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from keyword import iskeyword

from loratrial.tasks.repair.values import LIMITS, Limits, Refusal, RefusedError

FUNCTIONS = frozenset(
    ("abs", "all", "any", "bool", "int", "len", "list", "max", "min", "sorted", "str", "sum", "tuple")
)
"""The names that may be called, and used for nothing else."""

_KEYWORDS = frozenset(("and", "or", "not", "in", "if", "else", "True", "False"))
_NODES = (
    ast.Constant,
    ast.Name,
    ast.List,
    ast.Tuple,
    ast.UnaryOp,
    ast.BinOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Call,
    ast.Subscript,
    ast.Slice,
)
# Every alternative matches exactly what Python's own tokenizer would take as one token, or nothing: a name or
# a number may not touch a quote (string prefixes), nor a string another (triple quotes), so that what is
# counted here is what the parser will see.
_TOKEN = re.compile(
    r"""
      (?P<space> [ ]+ )
    | (?P<name> [A-Za-z_][A-Za-z0-9_]* (?![A-Za-z0-9_'"]) )
    | (?P<number> (?:0|[1-9][0-9]*) (?![A-Za-z0-9_.'"]) )
    | (?P<text> (?: '(?:[^'\\\x00-\x1f\x7f\ud800-\udfff]|\\['"\\nt])*'
                  | "(?:[^"\\\x00-\x1f\x7f\ud800-\udfff]|\\['"\\nt])*" ) (?!['"]) )
    | (?P<operator> \*\* | // | << | >> | [=!<>]= | [-+*%<>&|^~()\[\],:] )
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class Expression:
    """A source text that is of the language, and its tree."""

    source: str
    tree: ast.expr


def parse(source: str, limits: Limits = LIMITS) -> Expression | Refusal:
    """The expression that `source` writes, or why it is none: `too_long`, `syntax`, `not_allowed`,
    `too_deep`, `too_many_nodes` or `too_big`. Raises nothing, whatever the text."""
    try:
        if len(source) > limits.characters:
            raise RefusedError("too_long", f"{len(source)} characters, at most {limits.characters}")
        _check_tokens(source, limits)
        tree = ast.parse(source.strip(" "), mode="eval").body
        _check_tree(tree, limits)
    except RefusedError as refused:
        return refused.refusal
    except (SyntaxError, ValueError) as error:
        return Refusal("syntax", str(error.args[0]) if error.args else "not an expression")
    except (RecursionError, MemoryError, OverflowError):
        return Refusal("too_deep", "the parser gave up")
    return Expression(source.strip(" "), tree)


def tokens(source: str) -> Iterator[str]:
    """The tokens of a source, without spaces; raises `RefusedError` at the first that is not allowed."""
    position = 0
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None:
            raise RefusedError("not_allowed", f"character {position + 1}: {source[position]!a}")
        word = match.group()
        if match.lastgroup == "name" and (word[0] == "_" or (iskeyword(word) and word not in _KEYWORDS)):
            raise RefusedError("not_allowed", f"the word {word[:40]}")
        if match.lastgroup != "space":
            yield word
        position = match.end()


def _check_tokens(source: str, limits: Limits) -> None:
    depth = 0
    for count, token in enumerate(tokens(source), 1):
        if count > limits.tokens:
            raise RefusedError("too_many_nodes", f"more than {limits.tokens} tokens")
        depth += (token in ("(", "[")) - (token in (")", "]"))
        if depth > limits.depth:
            raise RefusedError("too_deep", f"brackets nested more than {limits.depth} deep")


def _check_tree(tree: ast.expr, limits: Limits) -> None:
    """Walks with a list of its own, since the tree may be as deep as it has tokens."""
    seen, waiting = 0, [(tree, 1)]
    while waiting:
        node, depth = waiting.pop()
        seen += 1
        if seen > limits.nodes:
            raise RefusedError("too_many_nodes", f"more than {limits.nodes} nodes")
        if depth > limits.depth:
            raise RefusedError("too_deep", f"nested more than {limits.depth} deep")
        waiting.extend((child, depth + 1) for child in _children(node, limits))


def _children(node: ast.expr, limits: Limits) -> list[ast.expr]:
    """The parts of a node that are expressions, once the node itself is found to be allowed."""
    if not isinstance(node, _NODES):
        raise RefusedError("not_allowed", type(node).__name__)
    if isinstance(node, ast.Constant):
        if type(node.value) not in (int, bool, str):
            raise RefusedError("not_allowed", f"a constant of type {type(node.value).__name__}")
        if isinstance(node.value, int) and node.value.bit_length() > limits.bits:
            raise RefusedError("too_big", f"an integer of {node.value.bit_length()} bits")
        return []
    if isinstance(node, ast.Name):
        if node.id in FUNCTIONS:
            raise RefusedError("not_allowed", f"{node.id} without a call")
        return []
    if isinstance(node, ast.Call):
        if node.keywords or not (isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS):
            raise RefusedError("not_allowed", f"the call {ast.unparse(node.func)[:40]}(...)")
        return node.args
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        bounds = (node.slice.lower, node.slice.upper, node.slice.step)
        return [node.value, *(bound for bound in bounds if bound is not None)]
    if isinstance(node, ast.Slice):
        raise RefusedError("not_allowed", "a slice among several indices")
    return [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
