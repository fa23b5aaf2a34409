"""The learning record of an arm that learned from its own samples (`updates.jsonl`), and its recount.

A line says which groups one update learned from, with their raw rewards and advantages; it also holds losses,
norms and times, which only the training itself can know and which nothing here checks.
"""

import math
from collections.abc import Iterator, Sequence
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
    ordinal: int, rewards: Sequence[int | float], n_valid: int, advantage: str
) -> dict[str, Any]:
    """What the record has to say of one group: all advantages are 0 when it is tied or has nothing valid."""
    tied = len(set(rewards)) == 1
    learns = not tied and n_valid > 0
    return {
        "group": ordinal,
        "rewards": list(rewards),
        "tied": tied,
        "advantages": group_advantages(rewards, advantage) if learns else [0.0] * len(rewards),
    }


def group_differences(found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """What one group's entry of the record says otherwise."""
    differences = [
        f"{name} {found.get(name)!r}, recounted {expected[name]!r}"
        for name in ("rewards", "tied")
        if canonical(found.get(name)) != canonical(expected[name])
    ]
    advantages = found.get("advantages")
    if not _close(advantages, expected["advantages"]):
        differences.append(f"advantages {advantages!r}, recounted {expected['advantages']!r}")
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


def _close(found: Any, expected: Sequence[float]) -> bool:
    return (
        isinstance(found, list)
        and len(found) == len(expected)
        and all(
            isinstance(ours, int | float) and math.isclose(ours, theirs, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
            for ours, theirs in zip(found, expected, strict=True)
        )
    )
