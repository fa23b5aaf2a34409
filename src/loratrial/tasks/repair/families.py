"""The families of expressions that tasks are drawn from, graded from one sum to nested conditionals.

A family is a list of templates over roles: `{i}`, `{j}` are integers, `{p}`, `{q}` lists of integers, `{s}`,
`{t}` strings, `{c}`, `{d}` two different constants of 2..4. Which letter a role is written with is drawn anew
for each task.
Inputs are drawn with a lean towards what tells expressions apart and what makes them agree: zeros, equal
numbers, sorted lists, members.

Left out: any notion of which expression is right. The families only say where tasks begin.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal, cast

from loratrial.tasks.repair.kinds import KindName, Kinds
from loratrial.tasks.repair.values import Plain

FamilyName = Literal[
    "sums",
    "comparisons",
    "membership",
    "extremes",
    "products",
    "indexing",
    "slicing",
    "text",
    "logic",
    "totals",
    "conditionals",
    "sorted_slices",
    "nested",
]


@dataclass(frozen=True)
class Family:
    """Templates of one difficulty: `level` runs from 1 (one operator) to 5 (nested conditionals)."""

    name: FamilyName
    level: int
    templates: tuple[str, ...]


FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        Family(
            "sums",
            1,
            (
                "{i} + {j}",
                "{i} - {j}",
                "{i} + {j} + {c}",
                "{i} - {j} + {c}",
                "{i} - {c} - {j}",
            ),
        ),
        Family(
            "comparisons",
            1,
            (
                "{i} < {j}",
                "{i} >= {j}",
                "{i} + {c} < {j}",
                "{i} <= {j} - {c}",
                "{i} + {j} > {c}",
                "{i} - {j} == {c}",
            ),
        ),
        Family(
            "membership",
            1,
            (
                "{i} in {p}",
                "{i} not in {p}",
                "{i} + {c} in {p}",
                "{i} - {c} not in {p}",
                "{i} + {j} in {p}",
                "{i} * {c} in {p}",
            ),
        ),
        Family(
            "extremes",
            1,
            (
                "max({i}, {j})",
                "min({i}, {j}) + {c}",
                "max({i}, {c}) - {j}",
                "min({i}, {j}, {c})",
                "max({p}) - {i}",
                "min({p}) + {c}",
            ),
        ),
        Family(
            "products",
            2,
            (
                "{i} * {c} + {j}",
                "({i} + {j}) * {c}",
                "{i} * {j} - {c}",
                "{i} // {c} - {j}",
                "{i} % {c} + {j}",
                "abs({i} - {j}) * {c}",
            ),
        ),
        Family(
            "indexing",
            2,
            (
                "{p}[{c}] + {i}",
                "{p}[0] + {p}[{c}]",
                "{p}[-1] - {p}[0]",
                "{p}[1] - {i}",
                "{i} * {p}[-1]",
                "{p}[{c}] + {q}[{d}]",
            ),
        ),
        Family(
            "slicing",
            2,
            (
                "{p}[1:] + {q}",
                "{p}[{c}:-1]",
                "{p}[1:-1]",
                "{p}[::2] + {q}[:{c}]",
                "{p}[{c}:] + {q}[:1]",
                "{p}[1:3] + {q}[1:]",
            ),
        ),
        Family(
            "text",
            2,
            (
                "{s}[:{c}] + {t}[::2]",
                "{s}[1:] + {t}[-1]",
                "{s}[::-1] + {t}[{c}:]",
                "{s}[0] + {t}[1:]",
                "len({s}) - len({t}) + {c}",
                "{s}[{c}:] + {t}[:{d}]",
            ),
        ),
        Family(
            "logic",
            3,
            (
                "{i} < {j} and {i} in {p}",
                "{i} > {c} or {j} < {d}",
                "{i} in {p} or {j} not in {p}",
                "not ({i} < {j} or {j} in {p})",
                "{i} + {c} <= {j} and {j} in {p}",
            ),
        ),
        Family(
            "totals",
            3,
            (
                "sum({p}) - {i}",
                "sum({p}[{c}:])",
                "max({p}) - min({q})",
                "len({p}) * {c} + {i}",
                "sum({p}[:{c}]) - max({q})",
                "min({p}[1:]) + {i}",
            ),
        ),
        Family(
            "conditionals",
            3,
            (
                "{i} if {i} > {j} else {j} + {c}",
                "{i} + {j} if {i} < {c} else {i} - {j}",
                "{p}[0] if {i} in {p} else {i} - {c}",
                "{i} * {c} if {i} >= {j} else {j} - {d}",
            ),
        ),
        Family(
            "sorted_slices",
            4,
            (
                "sorted({p})[1:3] + {q}",
                "sorted({p})[-{c}:] + {q}[:1]",
                "sum(sorted({p})[:{c}]) + {i}",
                "sorted({p})[{c}] - {i}",
                "sorted({p} + {q})[::2]",
                "max(sorted({p})[:{c}]) - {i}",
            ),
        ),
        Family(
            "nested",
            5,
            (
                "{i} if {i} > {j} else {j} - {c} if {j} < {d} else {i} + {j}",
                "sum(sorted({p})[:{c}]) if {i} in {p} else max({q}[1:])",
                "sorted({p})[1:] if len({p}) > len({q}) else {q}[::-1]",
                "max({p}[1:]) - {i} if {i} < {j} and {i} in {p} else sum({q})",
                "sorted({p})[{c}] + {i} if {i} < {j} else {j} - sum({q}[:{d}])",
            ),
        ),
    )
}

_ROLES: Mapping[str, KindName] = {"i": "int", "j": "int", "p": "list", "q": "list", "s": "str", "t": "str"}
_LETTERS: Mapping[KindName, tuple[str, ...]] = {
    "int": ("x", "y", "z", "n", "m", "k"),
    "list": ("xs", "ys", "zs", "nums", "items"),
    "str": ("s", "t", "word", "name"),
}


def draw_expression(family: Family, random: Random) -> tuple[str, Kinds]:
    """The source of one expression of a family, and the kind of each of its inputs by name."""
    template = random.choice(family.templates)
    roles = sorted(set(re.findall(r"{([ijpqst])}", template)))
    letters = {kind: random.sample(names, len(names)) for kind, names in _LETTERS.items()}
    names = {role: letters[_ROLES[role]].pop() for role in roles}
    constants = dict(zip("cd", random.sample(range(2, 5), 2), strict=True))
    return template.format(**names, **constants), {names[role]: _ROLES[role] for role in roles}


def draw_distinct_inputs(kinds: Kinds, count: int, random: Random) -> list[dict[str, Plain]]:
    """`count` draws of inputs, no two alike; empty when chance does not give so many."""
    found: dict[str, dict[str, Plain]] = {}
    for _ in range(8 * count):
        inputs = draw_inputs(kinds, random)
        found.setdefault(repr(inputs), inputs)
        if len(found) == count:
            return list(found.values())
    return []


def draw_inputs(kinds: Kinds, random: Random) -> dict[str, Plain]:
    """One value for each input: integers of -9..9, lists of 5 to 7 such integers, words of 4 to 7 letters."""
    inputs: dict[str, Plain] = {}
    for name in sorted(kinds, key=lambda name: (kinds[name] != "list", name)):
        if kinds[name] == "list":
            inputs[name] = _draw_list(random)
        elif kinds[name] == "str":
            inputs[name] = "".join(random.choices("abcd", k=random.randint(4, 7)))
        else:
            inputs[name] = _draw_integer(random, list(inputs.values()))
    return {name: inputs[name] for name in kinds}


def _draw_list(random: Random) -> list[Plain]:
    items = [random.randint(-9, 9) if random.random() < 0.3 else random.randint(0, 9) for _ in range(7)]
    kept = items[: random.randint(5, 7)]
    return cast(list[Plain], sorted(kept) if random.random() < 0.3 else kept)


def _draw_integer(random: Random, others: list[Plain]) -> int:
    """Often a number that stands in the other inputs already, or a small one."""
    nearby = [part for other in others for part in (other if isinstance(other, list) else [other])]
    numbers = [part for part in nearby if isinstance(part, int)]
    if numbers and random.random() < 0.35:
        return random.choice(numbers)
    return random.randint(0, 3) if random.random() < 0.35 else random.randint(-9, 9)
