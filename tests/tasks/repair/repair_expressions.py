"""Random expressions of the repair language, most of them of sensible types, some not."""

from random import Random

INPUTS = {"x": 3, "y": -2, "b": True, "xs": [3, 0, -1, 3], "ys": [], "pair": (1, 2), "s": "abca", "t": ""}
_NUMBERS = ("x", "y", "b", "0", "1", "2", "7", "-3", "True")
_SEQUENCES = ("xs", "ys", "pair", "s", "t", "[1, 2, 3]", "(0, 1)", "'ab'", "[]", "()", "'a\\'b'")
_ARITHMETIC = ("+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "**")
_RELATIONS = ("<", "<=", ">", ">=", "==", "!=")
_OF_ONE = ("len", "min", "max", "sum", "sorted", "any", "all", "list", "tuple", "bool", "str", "int", "abs")


def draw(random: Random, depth: int) -> str:
    """An expression nested at most `depth` deep, written with all its brackets."""
    if depth == 0:
        return random.choice(_NUMBERS if random.random() < 0.55 else _SEQUENCES)

    def part() -> str:
        return draw(random, random.randrange(depth))

    def bound() -> str:
        return random.choice(("", "", "1", "-1", "2", part()))

    shape = random.randrange(12)
    if shape <= 2:
        return f"({part()} {random.choice(_ARITHMETIC)} {part()})"
    if shape == 3:
        return f"({random.choice(('-', '+', '~', 'not '))}{part()})"
    if shape == 4:
        return f"({part()} {random.choice(_RELATIONS)} {part()} {random.choice(_RELATIONS)} {part()})"
    if shape == 5:
        return f"({part()} {random.choice(('in', 'not in'))} {random.choice(_SEQUENCES)})"
    if shape == 6:
        return f"({part()} {random.choice(('and', 'or'))} {part()} {random.choice(('and', 'or'))} {part()})"
    if shape == 7:
        return f"({part()} if {part()} else {part()})"
    if shape == 8:
        return f"{random.choice(_OF_ONE)}({part()})"
    if shape == 9:
        return f"{random.choice(('min', 'max', 'sum', 'len', 'sorted', 'abs'))}({part()}, {part()})"
    if shape == 10:
        return f"{random.choice(_SEQUENCES)}[{bound()}:{bound()}:{bound()}]"
    return random.choice((f"({part()})[{part()}]", f"[{part()}, {part()}]", f"({part()}, {part()})"))
