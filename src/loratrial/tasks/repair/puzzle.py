"""What one repair puzzle is made of, private parts included. No logic."""

from collections.abc import Mapping
from dataclasses import dataclass

from loratrial.tasks.repair.describe import Wording
from loratrial.tasks.repair.kinds import Kinds

LABELS = ("A", "B", "C", "D")
ANSWER_PREFIX = "Answer:"
"""What stands before the label in every answer."""
SPLITS = ("train", "dev", "test")


@dataclass(frozen=True)
class Case:
    """Inputs by name and the right output, each written as a literal of the language."""

    inputs: Mapping[str, str]
    output: str


@dataclass(frozen=True)
class Verdict:
    """On how many examples and on how many hidden inputs a candidate differs from the right one."""

    failed_examples: int
    failed_hidden: int


@dataclass(frozen=True)
class Puzzle:
    """One task: `candidates[right]` is the true expression, `broken` one edit (`mutation`) away from it."""

    family: str
    level: int
    mutation: str
    wording: Wording
    kinds: Kinds
    description: str
    broken: str
    candidates: tuple[str, ...]
    right: int
    examples: tuple[Case, ...]
    hidden: tuple[Case, ...]
    verdicts: tuple[Verdict, ...]
