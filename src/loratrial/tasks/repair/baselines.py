"""Policies that need no model: answers by looks, by position, by the examples, by chance.

They are what a puzzle set must not reward. Generation keeps the looks at chance, every trial scores these
policies beside its arms, and `baseline_report` says where each stands against the 95 % interval of chance.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from loratrial.seeds import derive_seed
from loratrial.tasks.repair.puzzle import LABELS
from loratrial.tasks.repair.scoring import failures
from loratrial.tasks.task import Dataset, Item, Reference, State, Target

LOOKS = ("shortest", "longest", "closest", "farthest", "most_typical", "odd_one_out")

Looks = Mapping[str, Sequence[int]]
"""For each look, one number a candidate; the smallest is what the look would choose."""


@lru_cache(maxsize=4096)
def edit_distance(left: str, right: str) -> int:
    """Levenshtein distance in characters."""
    previous = list(range(len(right) + 1))
    for row, mine in enumerate(left, 1):
        current = [row]
        for column, theirs in enumerate(right, 1):
            kept = previous[column - 1] + (mine != theirs)
            current.append(min(kept, previous[column] + 1, current[-1] + 1))
        previous = current
    return previous[-1]


def looks(broken: str, candidates: Sequence[str]) -> Looks:
    """What can be seen of candidates without reading them: length, distance to the broken expression, and
    distance to one another."""
    lengths = [len(candidate) for candidate in candidates]
    distances = [edit_distance(broken, candidate) for candidate in candidates]
    apart = [sum(edit_distance(*sorted((mine, other))) for other in candidates) for mine in candidates]
    return {
        "shortest": lengths,
        "longest": [-length for length in lengths],
        "closest": distances,
        "farthest": [-distance for distance in distances],
        "most_typical": apart,
        "odd_one_out": [-distance for distance in apart],
    }


def choice(look: str, numbers: Sequence[int], broken: str, candidates: Sequence[str]) -> int:
    """The place of the smallest number. Ties are broken by a hash of the texts, so that the choice does not
    depend on where a candidate stands."""

    def rank(place: int) -> tuple[int, int]:
        return numbers[place], derive_seed("repair-tie", look, broken, candidates[place])

    return min(range(len(candidates)), key=rank)


def baseline_policies(dataset: Dataset) -> dict[str, Reference]:
    """Every policy that reads only what a prompt shows, by name; `majority` is the label that is most often
    right in the first split that the dataset has."""
    first = _items(dataset, dataset.streams[0].split if dataset.streams else None)
    rights = [dataset.target(item).private["right"] for item in first]
    majority = LABELS.index(max(LABELS, key=rights.count))

    def by_look(name: str) -> Reference:
        return _policy(name, lambda item: looks(item.public["broken"], item.public["candidates"])[name])

    return {
        "majority": _policy("majority", lambda item: [int(place != majority) for place in range(4)]),
        "random": _policy("random", lambda item: [0] * len(LABELS)),
        "passes_examples": _policy("passes_examples", _failed_examples),
        **{name: by_look(name) for name in LOOKS},
    }


@dataclass(frozen=True)
class Baseline:
    """How often a policy is right: `right` of `n`, beside the 95 % interval of guessing among four."""

    right: int
    n: int
    low: int
    high: int

    @property
    def at_chance(self) -> bool:
        return self.low <= self.right <= self.high


def baseline_report(dataset: Dataset, split: str | None = None) -> dict[str, Baseline]:
    """Each policy of `baseline_policies` over one split, or over all puzzles, against binomial chance."""
    # Imported here since it takes longer than making a small dataset.
    from scipy.stats import binom

    items = _items(dataset, split)
    low, high = binom.interval(0.95, len(items), 1 / len(LABELS)) if items else (0, 0)
    report = {}
    for name, policy in baseline_policies(dataset).items():
        answers = ((policy(item, "", dataset.target(item)), dataset.target(item)) for item in items)
        right = sum(answer == f"Answer: {target.private['right']}" for answer, target in answers)
        report[name] = Baseline(right, len(items), int(low), int(high))
    return report


def _policy(name: str, numbers: Callable[[Item], Sequence[int]]) -> Reference:
    """The policy that answers with a candidate of the smallest number."""

    def answer(item: Item, state: State, target: Target) -> str:
        place = choice(name, numbers(item), item.public["broken"], item.public["candidates"])
        return f"Answer: {LABELS[place]}"

    return answer


def _failed_examples(item: Item) -> list[int]:
    return [len(failures(candidate, item.public["examples"])) for candidate in item.public["candidates"]]


def _items(dataset: Dataset, split: str | None) -> list[Item]:
    streams = dataset.streams if split is None else dataset.split(split)
    return [item for stream in streams for item in stream.items]
