"""The published score of notes: value recall, keys ignored.

Reward = unique predicted signatures that are among the unique target signatures. Whether values stand under
the right attribute is judged in `assignment`.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from loratrial.tasks.notes.notes import Fact
from loratrial.tasks.notes.values import Signature, text_signature


@dataclass(frozen=True)
class ValueRecall:
    """Predicted against target signatures, each list sorted and without repeats."""

    matched: Sequence[Signature]
    missing: Sequence[Signature]
    unsupported: Sequence[Signature]

    @property
    def target_values(self) -> int:
        return len(self.matched) + len(self.missing)

    @property
    def recall(self) -> float:
        return len(self.matched) / self.target_values if self.target_values else 0.0

    @property
    def precision(self) -> float:
        predicted = len(self.matched) + len(self.unsupported)
        return len(self.matched) / predicted if predicted else 0.0

    @property
    def exact(self) -> bool:
        return not self.missing and not self.unsupported


def value_recall(facts: Iterable[Fact], target: Collection[Signature]) -> ValueRecall:
    """Compare the values of saved facts with the target's signatures, as sets."""
    predicted = {text_signature(fact.value) for fact in facts}
    wanted = set(target)
    return ValueRecall(
        matched=sorted(predicted & wanted),
        missing=sorted(wanted - predicted),
        unsupported=sorted(predicted - wanted),
    )
