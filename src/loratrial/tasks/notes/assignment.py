"""Whether each fact stands under the right attribute: the assignment score.

The rule that maps a free-form key to an attribute (`AttributeIndex.find`) is deterministic and guesses
nothing: a key that could mean two attributes, or says a word too many (`sister shoe size`, `old hat size`),
is unassigned. Values are compared by signature, as in `scoring`. No published system has this score.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loratrial.tasks.notes.notes import Fact
from loratrial.tasks.notes.values import Signature, text_signature, tokens, value_signature
from loratrial.tasks.task import Json

FILLER = frozenset(
    tokens(
        "a an and as at by context current currently default explicit explicitly favorite favourite first "
        "for full i in is me mine my new now of on or our own preference preferences preferred purchase "
        "recipient s stated the to user users usual usually value with"
    )
)
"""Words of a key that say nothing about which attribute it means."""

SYNONYMS = {
    "job": "occupation",
    "profession": "occupation",
    "town": "city",
    "state": "status",
}


def content(key: str) -> frozenset[str]:
    """The words of a key that matter: its tokens without fillers, in the singular, synonyms made one."""
    words = (_singular(token) for token in tokens(key) if token not in FILLER)
    return frozenset(SYNONYMS.get(word, word) for word in words)


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us")):
        return word[:-1]
    return word


class AttributeIndex:
    """The attributes of one target, found by key."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._contents = [content(key) for key in keys]
        self._exact = {words: place for place, words in enumerate(self._contents)}

    def find(self, key: str | None) -> int | None:
        """The place of the attribute that `key` means, or None.

        1. The content words of the key are those of an attribute: that attribute.
        2. Otherwise they are some of the words of exactly one attribute: that one (`size` when the target
           holds a single size).
        3. Otherwise none: no key, no content words, a word that the attribute does not have, or several
           attributes that would do.
        """
        words = content(key) if key is not None else frozenset()
        if not words:
            return None
        if words in self._exact:
            return self._exact[words]
        places = [place for place, known in enumerate(self._contents) if words < known]
        return places[0] if len(places) == 1 else None


@dataclass(frozen=True)
class Assignment:
    """Saved facts against the attributes of one target.

    Every fact is exactly one of `correct`, `stale` (a value that the attribute had before), `misattributed`
    (a value that another attribute has or had), `invented` (a value from nowhere) and `unassigned` (a key
    that means no attribute). `right` are the attributes that have a correct fact and no other value beside
    it; `conflicts` those that hold two values. `by_kind` is [right, all] by the kind of event that set the
    value. `claims` counts the different things that the notes say: facts, those that repeat an attribute
    with the same value counted once.
    """

    right: tuple[str, ...]
    n_attributes: int
    claims: int
    correct: int
    stale: int
    misattributed: int
    invented: int
    unassigned: int
    conflicts: int
    by_kind: Mapping[str, list[int]]

    @property
    def precision(self) -> float:
        return len(self.right) / self.claims if self.claims else 0.0

    @property
    def recall(self) -> float:
        return len(self.right) / self.n_attributes if self.n_attributes else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both, computed from counts so that equal notes have equal scores."""
        total = self.claims + self.n_attributes
        return 2 * len(self.right) / total if total else 0.0

    @property
    def exact(self) -> bool:
        return len(self.right) == self.n_attributes == self.claims


def assign(facts: Sequence[Fact], attributes: Sequence[Mapping[str, Json]]) -> Assignment:
    """Judge saved facts against a target's attributes, each a map with `key`, `value`, `kind` and `stale`
    (the earlier values)."""
    index = AttributeIndex([attribute["key"] for attribute in attributes])
    now = [value_signature(attribute["value"]) for attribute in attributes]
    before = [{value_signature(old) for old in attribute["stale"]} for attribute in attributes]
    anywhere = set(now).union(*before)
    held: dict[int, set[Signature]] = {}
    counts = dict.fromkeys(("correct", "stale", "misattributed", "invented", "unassigned"), 0)
    for fact in facts:
        place = index.find(fact.key)
        signature = text_signature(fact.value)
        if place is None:
            counts["unassigned"] += 1
            continue
        held.setdefault(place, set()).add(signature)
        if signature == now[place]:
            counts["correct"] += 1
        elif signature in before[place]:
            counts["stale"] += 1
        elif signature in anywhere:
            counts["misattributed"] += 1
        else:
            counts["invented"] += 1
    right = [place for place, values in held.items() if values == {now[place]}]
    by_kind: dict[str, list[int]] = {}
    for place, attribute in enumerate(attributes):
        tally = by_kind.setdefault(attribute["kind"], [0, 0])
        tally[0] += place in right
        tally[1] += 1
    return Assignment(
        right=tuple(attributes[place]["key"] for place in sorted(right)),
        n_attributes=len(attributes),
        claims=counts["unassigned"] + sum(len(values) for values in held.values()),
        conflicts=sum(len(values) > 1 for values in held.values()),
        by_kind=by_kind,
        **counts,
    )
