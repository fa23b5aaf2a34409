"""What a reasoning token costs: reward = success - price x tokens, and how the price moves from update to
update.

A controller is its settings; where it stands is a `PriceState`, which goes through JSON unchanged, so that
a resumed training is charged what an uninterrupted one is. Every moving price is kept within bounds, and
what is kept is the bounded one: a controller at its bound turns round at the first update that tells it to
(no wind-up).

The formulas of the recount (`evidence.prices`) are written apart on purpose: they check these. Left out:
which tokens count, and the advantages that priced rewards make."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol, Self


def priced_reward(reward: int | float, price: float, n_tokens: int) -> int | float:
    """The reward less what its reasoning tokens cost; the reward itself, of its own type, at a price of 0."""
    return reward - price * n_tokens if price else reward


def integral(
    price: float,
    accuracy: float,
    *,
    step: float,
    target_accuracy: float,
    min_price: float,
    max_price: float,
) -> float:
    """price + step x (accuracy - target): a policy that is better than it needs to be is charged more.

    A-DLP (arXiv 2505.18298), which floors the price at 0; the cap is ours.
    """
    return _bounded(price + step * (accuracy - target_accuracy), min_price, max_price)


def dual(
    price: float,
    lengths: Sequence[int],
    *,
    step: float,
    target_tokens: float,
    min_price: float,
    max_price: float,
) -> float:
    """price + step x mean(length / target - 1): the multiplier of a constraint on length, of either sign.

    LEASH (arXiv 2512.21540).
    """
    error = sum(length / target_tokens - 1 for length in lengths) / len(lengths)
    return _bounded(price + step * error, min_price, max_price)


def multiplicative(
    price: float,
    smoothed: float,
    *,
    alpha: float,
    target_accuracy: float,
    min_price: float,
    max_price: float,
) -> float:
    """price x exp(alpha x (smoothed accuracy - target)): a step in proportion to the price. Ours."""
    return _bounded(price * math.exp(alpha * (smoothed - target_accuracy)), min_price, max_price)


def smooth(previous: float | None, accuracy: float, past: float) -> float:
    """The exponential moving average in which the past weighs `past`; the first accuracy stands for
    itself."""
    return accuracy if previous is None else past * previous + (1 - past) * accuracy


@dataclass(frozen=True)
class PriceState:
    """Where a controller stands after `n_updates`."""

    price: float
    """Of one reasoning token (reward a token)."""
    smoothed: float | None = None
    """Smoothed accuracy, where the controller has one."""
    n_updates: int = 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        return cls(**value)


class Controller(Protocol):
    """How a price begins and moves."""

    def start(self) -> PriceState:
        """The state before the first update."""
        ...

    def after(self, state: PriceState, successes: Sequence[float], lengths: Sequence[int]) -> PriceState:
        """The state after an update whose candidates had these raw rewards (0 to 1) and reasoning tokens."""
        ...


@dataclass(frozen=True)
class FixedPrice:
    """The same price throughout."""

    price: float

    def start(self) -> PriceState:
        return PriceState(self.price)

    def after(self, state: PriceState, successes: Sequence[float], lengths: Sequence[int]) -> PriceState:
        return PriceState(self.price, None, state.n_updates + 1)


@dataclass(frozen=True)
class IntegralPrice:
    """See `integral`."""

    price: float
    step: float
    target_accuracy: float
    min_price: float
    max_price: float

    def start(self) -> PriceState:
        return PriceState(self.price)

    def after(self, state: PriceState, successes: Sequence[float], lengths: Sequence[int]) -> PriceState:
        price = integral(
            state.price,
            _accuracy(successes),
            step=self.step,
            target_accuracy=self.target_accuracy,
            min_price=self.min_price,
            max_price=self.max_price,
        )
        return PriceState(price, None, state.n_updates + 1)


@dataclass(frozen=True)
class DualPrice:
    """See `dual`."""

    price: float
    step: float
    target_tokens: float
    min_price: float
    max_price: float

    def start(self) -> PriceState:
        return PriceState(self.price)

    def after(self, state: PriceState, successes: Sequence[float], lengths: Sequence[int]) -> PriceState:
        price = dual(
            state.price,
            lengths,
            step=self.step,
            target_tokens=self.target_tokens,
            min_price=self.min_price,
            max_price=self.max_price,
        )
        return PriceState(price, None, state.n_updates + 1)


@dataclass(frozen=True)
class MultiplicativePrice:
    """See `multiplicative`; `smoothing` is the weight of the past in the accuracy."""

    price: float
    alpha: float
    target_accuracy: float
    smoothing: float
    min_price: float
    max_price: float

    def start(self) -> PriceState:
        return PriceState(self.price)

    def after(self, state: PriceState, successes: Sequence[float], lengths: Sequence[int]) -> PriceState:
        smoothed = smooth(state.smoothed, _accuracy(successes), self.smoothing)
        price = multiplicative(
            state.price,
            smoothed,
            alpha=self.alpha,
            target_accuracy=self.target_accuracy,
            min_price=self.min_price,
            max_price=self.max_price,
        )
        return PriceState(price, smoothed, state.n_updates + 1)


@dataclass(frozen=True)
class ReplayedPrice:
    """The recorded prices of another training, open-loop: whatever happens here, update n is charged what
    update n was there; past their end the last one stays."""

    prices: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.prices:
            raise ValueError("there is no price to play back")

    def start(self) -> PriceState:
        return PriceState(self.prices[0])

    def after(self, state: PriceState, successes: Sequence[float], lengths: Sequence[int]) -> PriceState:
        n_updates = state.n_updates + 1
        return PriceState(self.prices[min(n_updates, len(self.prices) - 1)], None, n_updates)


def _accuracy(successes: Sequence[float]) -> float:
    return sum(successes) / len(successes)


def _bounded(price: float, low: float, high: float) -> float:
    return min(max(price, low), high)
