"""Two results side by side, figure by figure: what a run's result.json says and what a recount derived.

Left out: what a figure means. Numbers that went through a quantile function may differ in their last digits
from machine to machine, so fractions are compared to 1e-9 and everything else exactly.
"""

import math
from collections.abc import Iterator
from typing import Any

from loratrial.evidence.jsonio import canonical

TOLERANCE = 1e-9
_ABSENT = object()


def result_differences(stored: dict[str, Any], derived: dict[str, Any]) -> tuple[int, list[str]]:
    """How many leaves were compared, and a line for each that differs, by its path within the result."""
    ours = dict(_leaves(stored))
    theirs = dict(_leaves(derived))
    differences = [
        f"{path} is {_spelt(ours, path)}, recounted {_spelt(theirs, path)}"
        for path in [*theirs, *(path for path in ours if path not in theirs)]
        if not _same(ours.get(path, _ABSENT), theirs.get(path, _ABSENT))
    ]
    return len(ours.keys() | theirs.keys()), differences


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value that holds no other, by its path; an empty list or object is one."""
    children: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        children = [(f"{path}.{name}" if path else name, inner) for name, inner in value.items()]
    elif isinstance(value, list):
        children = [(f"{path}[{index}]", inner) for index, inner in enumerate(value)]
    if not children:
        yield path, value
    for name, inner in children:
        yield from _leaves(inner, name)


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return type(ours) is type(theirs) and bool(ours == theirs)


def _spelt(leaves: dict[str, Any], path: str) -> str:
    return canonical(leaves[path]) if path in leaves else "absent"
