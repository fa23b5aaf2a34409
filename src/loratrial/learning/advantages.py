"""Advantages of a group from its raw rewards.

Ties are decided on the raw rewards, before any arithmetic: centred floats make equal rewards look different.
The formulas of the recount (`evidence.learning_record`) are written apart on purpose: they check these.
"""

import math
from collections.abc import Sequence
from typing import Literal

Advantage = Literal["group_std", "leave_one_out"]


def is_tied(rewards: Sequence[float]) -> bool:
    """Whether all rewards of a group are equal, so that it has nothing to teach: raw ones, or, where tokens
    have a price, priced ones (equal rewards and equal tokens make the same float)."""
    return all(reward == rewards[0] for reward in rewards)


def group_std(rewards: Sequence[float]) -> list[float]:
    """(r_i - mean) / std over the group, population std; the group must not be tied.

    GRPO: Shao et al. 2024, arXiv 2402.03300, section 4.1.2.
    """
    n = len(rewards)
    mean = sum(rewards) / n
    std = (sum((reward - mean) ** 2 for reward in rewards) / n) ** 0.5
    return [(reward - mean) / std for reward in rewards]


def leave_one_out(rewards: Sequence[float]) -> list[float]:
    """r_i - mean of the others' rewards; the group has at least two.

    RLOO: Ahmadian et al. 2024, arXiv 2402.14740, section 2.3.
    """
    n, total = len(rewards), sum(rewards)
    return [reward - (total - reward) / (n - 1) for reward in rewards]


def advantages(rewards: Sequence[float], kind: Advantage) -> list[float]:
    """The advantages of an untied group, by kind."""
    return group_std(rewards) if kind == "group_std" else leave_one_out(rewards)


def price_changed(priced: Sequence[float], unpriced: Sequence[float]) -> bool:
    """Whether a price made any advantage another one, beyond the rounding of float64."""
    pairs = zip(priced, unpriced, strict=True)
    return not all(math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12) for ours, theirs in pairs)
