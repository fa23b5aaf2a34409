"""Making repair puzzles whose right answer cannot be told from the looks of the candidates.

A puzzle begins with a broken expression. Its mutants are run on drawn inputs; four that behave differently,
but alike on a few inputs, become the candidates, and those few inputs the examples. Only then is it decided
which of the four is right; the description, the outputs and the name of the mutation follow from that choice.
So the candidates are of one kind: each is one edit away from the broken expression, and each could have been
the right one. Neither length, nor edit distance, nor being the odd one out carries the answer, and what noise
would remain in a small set is held down by `_Balance`.

In which split an expression may be right is decided by a hash of its text, so that no right answer learned in
training is met again in an evaluation.

Left out: prompts, files, scores.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from loratrial.errors import DataError
from loratrial.seeds import derive_seed
from loratrial.tasks.repair.baselines import choice, looks
from loratrial.tasks.repair.describe import Wording, describe
from loratrial.tasks.repair.families import (
    FAMILIES,
    Family,
    FamilyName,
    draw_distinct_inputs,
    draw_expression,
)
from loratrial.tasks.repair.mutations import mutants
from loratrial.tasks.repair.puzzle import Case, Puzzle, Verdict
from loratrial.tasks.repair.search import Behaviour, choose_hidden, find_four, mutant_pool, run

_DRAWS = 32
"""Inputs on which mutants are compared; examples and hidden inputs are taken from them."""
_ATTEMPTS = 400


@dataclass(frozen=True)
class Shape:
    """How puzzles are made, whatever their number; the fields are those of the task's options."""

    families: tuple[FamilyName, ...]
    examples: int
    hidden: int
    matching_share: float


def split_of(expression: str) -> str:
    """The split that an expression may be right in: train for half of all texts, dev and test for a quarter
    each."""
    return ("train", "train", "dev", "test")[derive_seed("repair-split", expression) % 4]


def generate(split: str, count: int, shape: Shape, seed: int) -> Iterator[Puzzle]:
    """`count` puzzles of one split, families in turn. The same arguments give the same puzzles, and a larger
    count only adds to them. Raises `DataError` when a family gives no new puzzle in many draws."""
    random = Random(derive_seed("repair", seed, split))
    balance = _Balance()
    places: list[int] = []
    made: set[frozenset[str]] = set()
    for index in range(count):
        family = FAMILIES[shape.families[index % len(shape.families)]]
        places = places or random.sample(range(4), 4)
        place = places.pop()
        matching = random.random() < shape.matching_share
        for _ in range(_ATTEMPTS):
            puzzle = _attempt(split, family, shape, matching, place, balance, random)
            if puzzle and frozenset((puzzle.broken, *puzzle.candidates)) not in made:
                break
        else:
            raise DataError(
                f"repair: family {family.name} gave no new puzzle for {split} in {_ATTEMPTS} draws; "
                f"ask for fewer than {count} puzzles, more families or fewer examples"
            )
        made.add(frozenset((puzzle.broken, *puzzle.candidates)))
        balance.add(_choices(puzzle.broken, puzzle.candidates), puzzle.right)
        yield puzzle


class _Balance:
    """How much more often than by chance each look would have found the right answer so far."""

    def __init__(self) -> None:
        self.excess: dict[str, float] = {}

    def cost(self, choices: Mapping[str, int], right: int) -> float:
        """Sum of squares of the excess, if `right` were right in the next puzzle."""
        return sum(excess**2 for excess in self._next(choices, right).values())

    def add(self, choices: Mapping[str, int], right: int) -> None:
        self.excess = self._next(choices, right)

    def _next(self, choices: Mapping[str, int], right: int) -> dict[str, float]:
        return {look: self.excess.get(look, 0.0) + (place == right) - 0.25 for look, place in choices.items()}


def _choices(broken: str, candidates: Sequence[str]) -> dict[str, int]:
    """Which candidate each look would choose."""
    seen = looks(broken, candidates)
    return {look: choice(look, numbers, broken, candidates) for look, numbers in seen.items()}


def _attempt(
    split: str, family: Family, shape: Shape, matching: bool, place: int, balance: _Balance, random: Random
) -> Puzzle | None:
    """One puzzle with its right candidate at `place`, or None if this draw does not give one."""
    source, kinds = draw_expression(family, random)
    draws = draw_distinct_inputs(kinds, _DRAWS, random)
    broken = run(source, draws) if draws else None
    if broken is None:
        return None
    pool = mutant_pool(broken, kinds, draws, random)
    able_texts = {one.expression.source for one in pool if split_of(one.expression.source) == split}
    four = find_four(pool, broken, able_texts, (shape.examples, matching), random)
    if four is None:
        return None
    texts = [member.expression.source for member in four.members]
    able = [which for which in range(four.may_be_right) if texts[which] in able_texts]
    choices = _choices(source, texts)
    truth = min(random.sample(able, len(able)), key=lambda which: balance.cost(choices, which))
    hidden = choose_hidden(four, broken, truth, shape.hidden, random)
    wording: Wording = random.choice((0, 1))
    words = [describe(member.expression.tree, kinds, wording) for member in four.members]
    if hidden is None or words.count(words[truth]) > 1:
        return None
    right = four.members[truth]
    order = random.sample([which for which in range(4) if which != truth], 3)
    order.insert(place, truth)

    def cases(places: tuple[int, ...]) -> tuple[Case, ...]:
        literals = ({name: repr(value) for name, value in draws[one].items()} for one in places)
        return tuple(Case(inputs, right.outputs[one]) for inputs, one in zip(literals, places, strict=True))

    return Puzzle(
        family=family.name,
        level=family.level,
        mutation=next(
            m.operator for m in mutants(right.expression.tree, kinds) if ast.unparse(m.tree) == source
        ),
        wording=wording,
        kinds=kinds,
        description=words[truth],
        broken=source,
        candidates=tuple(texts[which] for which in order),
        right=place,
        examples=cases(four.shown),
        hidden=cases(hidden),
        verdicts=tuple(_verdict(four.members[which], right, four.shown, hidden) for which in order),
    )


def _verdict(member: Behaviour, right: Behaviour, shown: tuple[int, ...], hidden: tuple[int, ...]) -> Verdict:
    agreed = member.agreement(right)
    return Verdict(len(set(shown) - agreed), len(set(hidden) - agreed))
