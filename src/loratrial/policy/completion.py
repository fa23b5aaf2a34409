"""One completion: the tokens that the policy drew, and those that were supplied to it before its choice.

A completion is free text, or free text up to a budget (perhaps none), then supplied tokens, then one token
drawn among a few labels. `inputs` says what the model reads of it and `predictors` which of those inputs
predict the drawn tokens, so that the sampler and the trainer speak of the same thing. The end token with
which a policy closes its free text is drawn and learned, but not read when a choice follows: the supplied
tokens stand in its place.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Finish = Literal["stop", "length"]


@dataclass(frozen=True)
class Choice:
    """A restricted last token: `supplied_ids` are read first and carry no loss; then one of `label_ids`."""

    supplied_ids: tuple[int, ...]
    label_ids: tuple[int, ...]


@dataclass(frozen=True)
class Completion:
    """What one candidate said. `stop`: it ended itself, its end token included; `length`: it was capped."""

    token_ids: Sequence[int] = field(default_factory=list)
    """Every token that was drawn, (R,): free text, its end token if it ended, the label if one was chosen."""
    logprobs: Sequence[float] = field(default_factory=list)
    """Of the distribution drawn from, (R,): of a label among the labels."""
    finish: Finish = "length"
    choice: Choice | None = None

    @property
    def n_free(self) -> int:
        """Tokens drawn from the whole vocabulary, an end token included."""
        return len(self.token_ids) - (self.choice is not None)

    @property
    def n_reasoning(self) -> int:
        """Tokens of the free text, its end token left out."""
        return n_reasoning(self.n_free, self.finish)

    @property
    def inputs(self) -> list[int]:
        """What the model reads of it after the prompt."""
        if self.choice is None:
            return list(self.token_ids)
        return [*self.token_ids[: self.n_reasoning], *self.choice.supplied_ids]

    @property
    def predictors(self) -> list[int]:
        """For each drawn token the index among `inputs` after which it was drawn; -1 is the prompt's end."""
        free = range(-1, self.n_free - 1)
        return [*free] if self.choice is None else [*free, len(self.inputs) - 1]


def n_reasoning(n_free: int, finish: str) -> int:
    """Tokens of a free text of `n_free` tokens without its end token."""
    return n_free - 1 if finish == "stop" and n_free else n_free
