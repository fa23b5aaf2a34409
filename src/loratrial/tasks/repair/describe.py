"""What an expression does, in plain English, read off its tree.

Two wordings say the same with different words. Compound parts stand in brackets, so that a description has
one meaning and two different expressions have two descriptions.
"""

import ast
from collections.abc import Mapping
from typing import Literal

from loratrial.tasks.repair.kinds import Kinds, kind_of
from loratrial.tasks.repair.trees import number

Wording = Literal[0, 1]
Pair = tuple[str, str]

_NUMERIC: Mapping[type[ast.operator], Pair] = {
    ast.Add: ("the sum of {} and {}", "{} plus {}"),
    ast.Sub: ("{} minus {}", "{} with {} taken away"),
    ast.Mult: ("the product of {} and {}", "{} times {}"),
    ast.FloorDiv: ("{} divided by {}, rounded down", "the whole quotient of {} by {}"),
    ast.Mod: ("the remainder of {} divided by {}", "{} modulo {}"),
    ast.Pow: ("{} to the power of {}", "{} raised to {}"),
    ast.LShift: ("{} shifted left by {} bits", "{} with its bits moved left {} places"),
    ast.RShift: ("{} shifted right by {} bits", "{} with its bits moved right {} places"),
    ast.BitAnd: ("the bitwise and of {} and {}", "the bits set in both {} and {}"),
    ast.BitOr: ("the bitwise or of {} and {}", "the bits set in {} or {}"),
    ast.BitXor: ("the bitwise exclusive or of {} and {}", "the bits set in just one of {} and {}"),
}
_JOINED: Mapping[type[ast.operator], Pair] = {
    ast.Add: ("{} followed by {}", "{} joined with {}"),
    ast.Mult: ("{} repeated, by {}", "the repetition of {} by {}"),
}
_SIGNS: Mapping[type[ast.unaryop], Pair] = {
    ast.USub: ("the negative of {}", "{} with its sign changed"),
    ast.UAdd: ("{} as a number", "the number {}"),
    ast.Invert: ("the bitwise complement of {}", "{} with all bits flipped"),
}
_RELATIONS: Mapping[type[ast.cmpop], Pair] = {
    ast.Lt: ("{} is less than {}", "{} is below {}"),
    ast.LtE: ("{} is at most {}", "{} is less than or equal to {}"),
    ast.Gt: ("{} is greater than {}", "{} is above {}"),
    ast.GtE: ("{} is at least {}", "{} is greater than or equal to {}"),
    ast.Eq: ("{} equals {}", "{} is the same as {}"),
    ast.NotEq: ("{} does not equal {}", "{} is different from {}"),
    ast.In: ("{} is in {}", "{} occurs in {}"),
    ast.NotIn: ("{} is not in {}", "{} does not occur in {}"),
}
_CALLS: Mapping[str, Pair] = {
    "abs": ("the absolute value of {}", "the distance of {} from zero"),
    "all": ("whether every item of {} is non-zero", "whether no item of {} is zero"),
    "any": ("whether some item of {} is non-zero", "whether {} has an item that is non-zero"),
    "bool": ("{} as a boolean", "the truth of {}"),
    "int": ("{} as an integer", "the integer that {} writes"),
    "len": ("the length of {}", "how many items {} has"),
    "list": ("{} as a list", "the list of what is in {}"),
    "max": ("the largest item of {}", "the maximum of {}"),
    "min": ("the smallest item of {}", "the minimum of {}"),
    "sorted": ("{} sorted in rising order", "the items of {} from smallest to largest"),
    "str": ("{} as a string", "the string that writes {}"),
    "sum": ("the total of {}", "all items of {} added up"),
    "tuple": ("{} as a tuple", "the tuple of what is in {}"),
}
_MANY: Mapping[str, Pair] = {
    "max": ("the largest of {}", "whichever is greatest among {}"),
    "min": ("the smallest of {}", "whichever is least among {}"),
}
_PLACES = {0: "first", 1: "second", 2: "third", 3: "fourth", 4: "fifth", -1: "last", -2: "second to last"}


def describe(tree: ast.expr, kinds: Kinds, wording: Wording = 0) -> str:
    """A noun phrase for the value of an expression, in one of two wordings."""
    return _Writer(kinds, wording).phrase(tree)


class _Writer:
    def __init__(self, kinds: Kinds, wording: Wording) -> None:
        self.kinds = kinds
        self.wording = wording

    def phrase(self, node: ast.expr) -> str:
        value = number(node)
        if value is not None:
            return str(value)
        match node:
            case ast.Name(id=name):
                return name
            case ast.Constant(value=constant):
                return repr(constant)
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return f"whether {self.clause(node)}"
            case ast.BinOp(left=left, op=op, right=right):
                joins = kind_of(node, self.kinds) in ("str", "list")
                words = _JOINED.get(type(op)) if joins else None
                return self.fill(words or _NUMERIC[type(op)], left, right)
            case ast.UnaryOp(op=op, operand=operand):
                return self.fill(_SIGNS[type(op)], operand)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                shape = ("{} if {}, otherwise {}", "{} when {}, and {} when not")[self.wording]
                return shape.format(self.part(body), self.clause(test), self.part(orelse))
            case ast.Call(func=ast.Name(id=name), args=[only]):
                return self.fill(_CALLS[name], only)
            case ast.Call(func=ast.Name(id=name), args=args):
                words = _MANY.get(name, (f"{name} of {{}}", f"{name} applied to {{}}"))
                return words[self.wording].format(self.listed(args))
            case ast.Subscript(value=base, slice=ast.Slice() as cut):
                return self.cut(base, cut)
            case ast.Subscript(value=base, slice=index):
                return self.item(base, index)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return f"the {type(node).__name__.lower()} of {self.listed(items)}"
        raise TypeError(f"no words for {type(node).__name__}")

    def clause(self, node: ast.expr) -> str:
        """A condition, as a clause that can follow `if` or `whether`."""
        match node:
            case ast.Compare(left=left, ops=ops, comparators=rest):
                sides = zip([left, *rest[:-1]], ops, rest, strict=True)
                return " and ".join(self.fill(_RELATIONS[type(op)], a, b) for a, op, b in sides)
            case ast.BoolOp(op=op, values=values):
                word = " and " if isinstance(op, ast.And) else " or "
                return word.join(self.condition(value) for value in values)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"{('it is not so that', 'it is false that')[self.wording]} ({self.clause(operand)})"
        return f"{self.part(node)} is true"

    def condition(self, node: ast.expr) -> str:
        simple = isinstance(node, ast.Compare) and len(node.ops) == 1
        return self.clause(node) if simple else f"({self.clause(node)})"

    def item(self, base: ast.expr, index: ast.expr) -> str:
        place = number(index)
        word = "character" if kind_of(base, self.kinds) == "str" else "item"
        if self.wording == 0 and place in _PLACES:
            return f"the {_PLACES[place]} {word} of {self.part(base)}"
        return f"the {word} of {self.part(base)} at index {self.part(index)}"

    def cut(self, base: ast.expr, cut: ast.Slice) -> str:
        """A slice: the common shapes by name, the rest by their bounds."""
        whole = self.part(base)
        word = "characters" if kind_of(base, self.kinds) == "str" else "items"
        bounds = (cut.lower, cut.upper, cut.step)
        match tuple(None if bound is None else number(bound) for bound in bounds):
            case (None, None, None) if bounds == (None, None, None):
                return f"a copy of {whole}"
            case (None, None, -1) if cut.lower is None and cut.upper is None:
                return (f"{whole} reversed", f"{whole} from back to front")[self.wording]
            case (1, None, None) if cut.upper is None and cut.step is None:
                return (f"{whole} without the first of its {word}", f"all {word} of {whole} after the first")[
                    self.wording
                ]
            case (None, int(n), None) if n > 1 and cut.lower is None and cut.step is None:
                return (f"the first {n} {word} of {whole}", f"the leading {n} {word} of {whole}")[
                    self.wording
                ]
            case (int(n), None, None) if n < -1 and cut.upper is None and cut.step is None:
                return (f"the last {-n} {word} of {whole}", f"the trailing {-n} {word} of {whole}")[
                    self.wording
                ]
        start = "" if cut.lower is None else f" from index {self.part(cut.lower)}"
        stop = "" if cut.upper is None else f" up to but not including index {self.part(cut.upper)}"
        step = "" if cut.step is None else f" in steps of {self.part(cut.step)}"
        return f"the {word} of {whole}{start}{stop}{step}"

    def part(self, node: ast.expr) -> str:
        """A phrase inside another one: in brackets unless it is a single word."""
        simple = isinstance(node, ast.Name | ast.Constant) or number(node) is not None
        return self.phrase(node) if simple else f"({self.phrase(node)})"

    def fill(self, words: Pair, *nodes: ast.expr) -> str:
        return words[self.wording].format(*map(self.part, nodes))

    def listed(self, nodes: list[ast.expr]) -> str:
        parts = [self.part(node) for node in nodes]
        return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)
