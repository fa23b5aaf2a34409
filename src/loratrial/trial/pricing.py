"""The token price of an arm in training: the controller that its trial file names, and where it stands.

The state after an update is part of the checkpoint, so that a resumed training is charged what an
uninterrupted one is. Left out: how a controller moves, which `learning.token_price` says.
"""

import json
from collections.abc import Sequence

from loratrial.errors import RunFolderError
from loratrial.evidence.learning_record import price_trace, read_updates
from loratrial.evidence.opened import OpenedRun
from loratrial.learning.group import Group
from loratrial.learning.token_price import (
    Controller,
    DualPrice,
    FixedPrice,
    IntegralPrice,
    MultiplicativePrice,
    PriceState,
    ReplayedPrice,
)
from loratrial.spec import TokenPrice


class Pricing:
    """What reasoning tokens cost an arm, from update to update."""

    def __init__(self, controller: Controller | None) -> None:
        """Without a controller nothing is charged, and no price is on record."""
        self._controller = controller
        self._state = controller.start() if controller else None

    @property
    def price(self) -> float | None:
        return self._state.price if self._state else None

    def look(self, groups: Sequence[Group]) -> None:
        """Move on, from the raw rewards and the reasoning tokens of the groups of one update."""
        if self._controller is None or self._state is None:
            return
        rewards = [float(reward) for group in groups for reward in group.rewards]
        lengths = [completion.n_reasoning for group in groups for completion in group.completions]
        self._state = self._controller.after(self._state, rewards, lengths)

    def saved(self) -> str:
        """The state as text for the checkpoint; empty without a controller."""
        return json.dumps(self._state.to_json()) if self._state else ""

    def restore(self, text: str) -> None:
        """Go on from `saved()`."""
        if self._controller is not None:
            self._state = PriceState.from_json(json.loads(text))


def pricing_of(run: OpenedRun, price: TokenPrice | None) -> Pricing:
    """The pricing that a trial file asks for. Raises RunFolderError when there is nothing to play back."""
    if price is None:
        return Pricing(None)
    if price.controller == "replay":
        path = run.folder.updates(price.of)
        trace = price_trace(read_updates(path))
        if not trace:
            raise RunFolderError(f"{path} holds no price to play back; train arm {price.of!r} anew")
        return Pricing(ReplayedPrice(tuple(trace)))
    settings = price.model_dump(exclude={"controller"})
    return Pricing(_CONTROLLERS[price.controller](**settings))


_CONTROLLERS = {
    "fixed": FixedPrice,
    "integral": IntegralPrice,
    "dual": DualPrice,
    "multiplicative": MultiplicativePrice,
}
