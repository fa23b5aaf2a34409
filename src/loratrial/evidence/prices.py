"""The recount of a token price: what an arm has to have been charged, update by update.

Written apart from the controllers that training uses (`learning.token_price`): each checks the other.
Sources: A-DLP (arXiv 2505.18298) for `integral`, LEASH (arXiv 2512.21540) for `dual`; bounds and
`multiplicative` are this project's own.
"""

import math
from collections.abc import Sequence

from loratrial.spec import (
    DualPrice,
    FixedPrice,
    IntegralPrice,
    MultiplicativePrice,
    ReplayedPrice,
    TokenPrice,
)

Outcome = tuple[Sequence[float], Sequence[int]]
"""Raw rewards and reasoning tokens of all candidates of one update."""


def expected_prices(
    price: TokenPrice, outcomes: Sequence[Outcome], replayed: Sequence[float] = ()
) -> list[float]:
    """The price charged at each update, and the one that would have come next: one more than `outcomes`.

    `replayed` are the prices of the arm that a `replay` plays back.
    """
    if isinstance(price, FixedPrice):
        return [price.price] * (len(outcomes) + 1)
    if isinstance(price, ReplayedPrice):
        last = len(replayed) - 1
        return [replayed[min(place, last)] for place in range(len(outcomes) + 1)] if replayed else []
    charged = [price.price]
    smoothed: float | None = None
    for rewards, lengths in outcomes:
        accuracy = math.fsum(rewards) / len(rewards)
        if isinstance(price, MultiplicativePrice):
            smoothed = (
                accuracy
                if smoothed is None
                else price.smoothing * smoothed + (1 - price.smoothing) * accuracy
            )
        following = _following(price, charged[-1], accuracy if smoothed is None else smoothed, lengths)
        charged.append(min(max(following, price.min_price), price.max_price))
    return charged


def _following(
    price: IntegralPrice | DualPrice | MultiplicativePrice,
    current: float,
    accuracy: float,
    lengths: Sequence[int],
) -> float:
    """The next price before its bounds."""
    if isinstance(price, IntegralPrice):
        return current + price.step * (accuracy - price.target_accuracy)
    if isinstance(price, DualPrice):
        error = math.fsum(length / price.target_tokens - 1 for length in lengths) / len(lengths)
        return current + price.step * error
    return current * math.exp(price.alpha * (accuracy - price.target_accuracy))
