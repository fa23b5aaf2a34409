"""What a learner is given: one sampled group with its raw rewards."""

from collections.abc import Sequence
from dataclasses import dataclass

from loratrial.policy.completion import Completion


@dataclass(frozen=True)
class Group:
    """All candidates of one item under one policy."""

    ordinal: int
    """Its place in the arm's training ledger."""
    prompts: Sequence[Sequence[int]]
    """Of each candidate: the same one throughout, unless labels are rotated."""
    completions: Sequence[Completion]
    rewards: Sequence[int | float]
    """Raw, as the task gave them."""
    valid: Sequence[bool]
