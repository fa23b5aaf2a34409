"""What a learner is given: one sampled group with its raw rewards."""

from collections.abc import Sequence
from dataclasses import dataclass

from loratrial.policy.sampler import Completion


@dataclass(frozen=True)
class Group:
    """All candidates of one item under one policy."""

    ordinal: int
    """Its place in the arm's training ledger."""
    prompt_ids: Sequence[int]
    completions: Sequence[Completion]
    rewards: Sequence[int | float]
    """Raw, as the task gave them."""
    valid: Sequence[bool]
