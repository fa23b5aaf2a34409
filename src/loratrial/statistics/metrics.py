"""From candidates to items to figures: every mean of the result table, as `docs/statistics.md` defines it.

Sums are exactly rounded (`math.fsum`), so that a figure does not depend on the order of its lines. Left out:
what a figure means, which is the task's, and its uncertainty, which `paired.py` holds.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from loratrial.statistics.paired import PairedDifference, paired_difference

Number = int | float

EXACT = "exact"
"""The figure of a candidate that is wholly right, where the task has one."""

PASS_AT_K = "pass_at_k"
"""1 for an item when one of its k candidates is exact, else 0; k is at least 2."""


@dataclass(frozen=True)
class ItemValues:
    """What one item gave under one policy."""

    stream: str
    item: int
    values: Mapping[str, Number]
    """Each figure's mean over the candidates (and repeats) that have it; `pass_at_k` beside them."""
    totals: Mapping[str, Number]
    """Each figure's sum over all candidates (and repeats)."""

    @property
    def key(self) -> tuple[str, int]:
        return self.stream, self.item


@dataclass(frozen=True)
class FigureMean:
    """One figure over items: the mean of the items' values, and the sum over all candidates."""

    mean: float
    total: Number
    n_items: int
    """The items that have the figure at all."""


def item_values(stream: str, item: int, candidates: Sequence[Mapping[str, Number]]) -> ItemValues:
    """One item from the figures of each of its k candidates; a figure that a candidate lacks is not 0."""
    columns = _columns(candidates)
    values = {name: math.fsum(column) / len(column) for name, column in columns.items()}
    totals = {name: _sum(column) for name, column in columns.items()}
    if EXACT in columns and len(candidates) > 1:
        totals[PASS_AT_K] = values[PASS_AT_K] = int(any(columns[EXACT]))
    return ItemValues(stream, item, values, totals)


def pooled(repeats: Iterable[Sequence[ItemValues]]) -> list[ItemValues]:
    """Repeats of the same items as one: seeds are repeated measurements of an item, no new items.

    Values are averaged and totals summed over the repeats, item by item, in order of first appearance.
    """
    by_item: dict[tuple[str, int], list[ItemValues]] = {}
    for items in repeats:
        for item in items:
            by_item.setdefault(item.key, []).append(item)
    return [
        ItemValues(
            *key,
            {
                name: math.fsum(column) / len(column)
                for name, column in _columns(i.values for i in same).items()
            },
            {name: _sum(column) for name, column in _columns(i.totals for i in same).items()},
        )
        for key, same in by_item.items()
    ]


def figure_means(items: Sequence[ItemValues]) -> dict[str, FigureMean]:
    """Every figure over `items`: each item counts once, however many candidates it has."""
    totals = _columns(item.totals for item in items)
    return {
        name: FigureMean(math.fsum(column) / len(column), _sum(totals[name]), len(column))
        for name, column in sorted(_columns(item.values for item in items).items())
    }


def stream_means(items: Sequence[ItemValues]) -> dict[str, dict[str, float]]:
    """The mean of every figure over the items of each stream."""
    streams: dict[str, list[ItemValues]] = {}
    for item in items:
        streams.setdefault(item.stream, []).append(item)
    return {
        stream: {name: figure.mean for name, figure in figure_means(own).items()}
        for stream, own in streams.items()
    }


def paired_differences(
    items: Sequence[ItemValues], control: Sequence[ItemValues]
) -> dict[str, PairedDifference]:
    """Every figure's mean of (item - the same item under the control), over items where both have it.

    Both hold the same items; streams are the clusters.
    """
    others = {item.key: item.values for item in control}
    columns: dict[str, list[tuple[float, str]]] = {}
    for item in items:
        other = others[item.key]
        for name in item.values.keys() & other.keys():
            columns.setdefault(name, []).append((item.values[name] - other[name], item.stream))
    return {
        name: paired_difference([value for value, _ in column], [stream for _, stream in column])
        for name, column in sorted(columns.items())
    }


def _columns(rows: Iterable[Mapping[str, Number]]) -> dict[str, list[Number]]:
    columns: dict[str, list[Number]] = {}
    for row in rows:
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    return columns


def _sum(column: Sequence[Number]) -> Number:
    """Whole numbers stay whole, so that counts are shown as counts."""
    return sum(column) if all(isinstance(value, int) for value in column) else math.fsum(column)
