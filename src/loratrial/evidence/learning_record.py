"""The learning record of an arm that learned from its own samples (`updates.jsonl`), and its recount.

A line says which groups one update learned from, with their raw rewards and advantages; it also holds losses,
norms and times, which only the training itself can know and which nothing here checks.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from loratrial.errors import RunFolderError
from loratrial.evidence.jsonio import canonical, parse

TOLERANCE = 1e-9


def group_advantages(rewards: Sequence[float], kind: str) -> list[float]:
    """The advantages of one untied group, (G,).

    `group_std`: the reward less the group's mean, over its population standard deviation (Shao et al. 2024,
    arXiv 2402.03300, section 4.1). `leave_one_out`: the reward less the mean of the others (Ahmadian et al.
    2024, arXiv 2402.14740, section 2.3).
    """
    n = len(rewards)
    total = math.fsum(rewards)
    if kind == "leave_one_out":
        return [reward - (total - reward) / (n - 1) for reward in rewards]
    mean = total / n
    deviation = math.sqrt(math.fsum((reward - mean) ** 2 for reward in rewards) / n)
    return [(reward - mean) / deviation for reward in rewards]


def expected_group(
    ordinal: int,
    rewards: Sequence[int | float],
    n_valid: int,
    advantage: str,
    price: float | None = None,
    lengths: Sequence[int] = (),
) -> dict[str, Any]:
    """What the record has to say of one group: all advantages are 0 when it is tied or has nothing valid.

    With a `price`, each of a candidate's `lengths` reasoning tokens costs so much of its reward; ties and
    advantages are those of what is left.
    """
    said: dict[str, Any] = {"group": ordinal, "rewards": list(rewards)}
    charged: Sequence[int | float] = rewards
    if price:
        charged = [reward - price * n for reward, n in zip(rewards, lengths, strict=True)]
    values = _advantages_or_none(charged, n_valid, advantage)
    if price is not None:
        free = _advantages_or_none(rewards, n_valid, advantage)
        said |= {"priced_rewards": list(charged), "price_changed": not _close(values, free)}
    return {**said, "tied": len(set(charged)) == 1, "advantages": values}


def _advantages_or_none(rewards: Sequence[int | float], n_valid: int, advantage: str) -> list[float]:
    learns = len(set(rewards)) > 1 and n_valid > 0
    return group_advantages(rewards, advantage) if learns else [0.0] * len(rewards)


def group_differences(found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """What one group's entry of the record says otherwise."""
    differences = [
        f"{name} {found.get(name)!r}, recounted {expected[name]!r}"
        for name in ("rewards", "tied", "price_changed")
        if canonical(found.get(name)) != canonical(expected.get(name))
    ]
    for name in ("advantages", "priced_rewards"):
        if name in expected and not _close(found.get(name), expected[name]):
            differences.append(f"{name} {found.get(name)!r}, recounted {expected[name]!r}")
    return [f"group {expected['group']}: {difference}" for difference in differences]


def read_updates(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of one learning record, in order.

    Raises RunFolderError naming file and line when the file is missing or a line is no JSON object.
    """
    if not path.exists():
        raise RunFolderError(f"{path} is missing; loratrial resume the run")
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                value = parse(line)
            except ValueError as error:
                raise RunFolderError(f"{path}:{number}: not a line of JSON: {error}") from None
            if not isinstance(value, dict):
                raise RunFolderError(f"{path}:{number}: not a JSON object")
            yield value


def group_ordinals(line: Mapping[str, Any]) -> list[int]:
    """The groups that one line of the record names; none when it has another form."""
    return [group.get("group", -1) for group in _groups(line)]


def price_trace(updates: Iterable[Mapping[str, Any]]) -> list[float]:
    """The price that was charged at each look at new groups, in order; empty where there was none."""
    trace: list[float] = []
    previous: list[int] = []
    for line in updates:
        ordinals = group_ordinals(line)
        if isinstance(line.get("price"), int | float) and ordinals != previous:
            trace.append(line["price"])
        previous = ordinals
    return trace


def price_summary(updates: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """What a training was charged: the price at its first and last look, its range, and in how many groups it
    changed any advantage; None where there was no price."""
    trace = price_trace(updates)
    if not trace:
        return None
    every = (group for line in updates for group in _groups(line))
    changed = {group.get("group") for group in every if group.get("price_changed")}
    return {
        "first": trace[0],
        "last": trace[-1],
        "lowest": min(trace),
        "highest": max(trace),
        "changed_groups": len(changed),
    }


def _groups(line: Mapping[str, Any]) -> list[dict[str, Any]]:
    groups = line.get("groups")
    if not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
        return []
    return groups


def _close(found: Any, expected: Sequence[float]) -> bool:
    return (
        isinstance(found, list)
        and len(found) == len(expected)
        and all(
            isinstance(ours, int | float) and math.isclose(ours, theirs, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
            for ours, theirs in zip(found, expected, strict=True)
        )
    )
