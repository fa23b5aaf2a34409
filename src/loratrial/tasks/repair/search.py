"""Finding four mutants that behave differently, but alike on a few inputs.

Behaviour is what drawn inputs show: two expressions that give the same on all of them count as equivalent.
The four are picked by their behaviour alone and in random order, so that each of them could be the right one.
"""

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from loratrial.tasks.repair.evaluator import evaluate
from loratrial.tasks.repair.kinds import Kinds
from loratrial.tasks.repair.language import Expression, parse
from loratrial.tasks.repair.mutations import mutants, natural
from loratrial.tasks.repair.values import Plain, Value

_POOL = 36
"""Mutants that are run, of all there are."""
_TRIES = 24
"""Random orders in which four are looked for; the last third forgives a broken expression that passes."""


@dataclass(frozen=True)
class Behaviour:
    """An expression, the operator that made it, and the literals of its outputs, one a drawn input."""

    expression: Expression
    operator: str
    outputs: tuple[str, ...]

    def agreement(self, other: "Behaviour") -> set[int]:
        """The places of the inputs on which two give the same type and value."""
        pairs = zip(self.outputs, other.outputs, strict=True)
        return {place for place, (mine, theirs) in enumerate(pairs) if mine == theirs}


@dataclass(frozen=True)
class Four:
    """Four mutants, and the places of the inputs to be shown. On those all four agree, or, when one is to be
    ruled out by the examples, the first three: `may_be_right` says how many of them may be the truth."""

    members: tuple[Behaviour, ...]
    shown: tuple[int, ...]
    may_be_right: int


def run(source: str, draws: Sequence[Mapping[str, Plain]], operator: str = "") -> Behaviour | None:
    """The behaviour of an expression; None if it has no value on some input."""
    parsed = parse(source)
    if not isinstance(parsed, Expression):
        return None
    outputs = []
    for inputs in draws:
        outcome = evaluate(parsed, inputs)
        if not isinstance(outcome, Value):
            return None
        outputs.append(repr(outcome.value))
    return Behaviour(parsed, operator, tuple(outputs))


def mutant_pool(
    broken: Behaviour, kinds: Kinds, draws: Sequence[Mapping[str, Plain]], random: Random
) -> list[Behaviour]:
    """Natural mutants that have a value on every input, not always the same one, and are not equivalent to
    the broken expression.
    Operators take turns, so that those with many edits do not crowd out the others."""
    edits: dict[str, list[str]] = {}
    for mutant in mutants(broken.expression.tree, kinds):
        if natural(mutant.tree):
            edits.setdefault(mutant.operator, []).append(ast.unparse(mutant.tree))
    turns = in_turns([(operator, text) for operator in sorted(edits) for text in edits[operator]], random)
    found = {text: run(text, draws, operator) for operator, text in turns[:_POOL]}
    different = (one for one in found.values() if one and one.outputs != broken.outputs)
    return [behaviour for behaviour in different if len(set(behaviour.outputs)) > 1]


def in_turns(edits: Sequence[tuple[str, str]], random: Random) -> list[tuple[str, str]]:
    """Pairs of (operator, text) in a random order in which every operator comes once, then again, ..."""
    shuffled = random.sample(edits, len(edits))
    rounds: dict[str, int] = {}
    ranked = []
    for operator, text in shuffled:
        rounds[operator] = rounds.get(operator, 0) + 1
        ranked.append((rounds[operator], operator, text))
    return [(operator, text) for _, operator, text in sorted(ranked, key=lambda rank: rank[0])]


def find_four(
    pool: list[Behaviour],
    broken: Behaviour,
    able: Collection[str],
    shape: tuple[int, bool],
    random: Random,
) -> Four | None:
    """Four mutants of pairwise different behaviour that agree on enough inputs to show, or None.

    `shape` is the number of inputs to show and whether all four agree on them; if not, the fourth fails on
    some. Some member that agrees is one of the texts `able`; fours without one are passed over whole, since
    beginning with such a text would tell it from the others. Looked for first: members made by different
    operators, and inputs to show on which the broken expression fails.
    """
    n_examples, matching = shape
    for attempt in range(_TRIES if len(pool) >= 4 else 0):
        strict = 3 * attempt < 2 * _TRIES
        first = random.choice(pool)
        members, odd = [first], set[int]()
        alike = set(range(len(broken.outputs)))
        failing = alike - first.agreement(broken)
        for other in random.sample(pool, len(pool)):
            agreed = alike & first.agreement(other)
            if any(other.outputs == member.outputs for member in members):
                continue
            if strict and any(other.operator == member.operator for member in members):
                continue
            if len(members) == 3 and not matching:
                odd = alike - agreed
                if odd:
                    members.append(other)
            elif len(agreed) >= n_examples and (agreed & failing or not strict):
                alike = agreed
                members.append(other)
            if len(members) == 4:
                may_be_right = 4 if matching else 3
                if not any(member.expression.source in able for member in members[:may_be_right]):
                    break
                shown = _choose_shown(first, alike, (odd, alike & failing), n_examples, random)
                return Four(tuple(members), shown, may_be_right)
    return None


def choose_hidden(
    four: Four, broken: Behaviour, truth: int, n_hidden: int, random: Random
) -> tuple[int, ...] | None:
    """Places of inputs that are not shown; each wrong member and the broken expression fail on one of them.
    None if some of these fail only on inputs that are shown. `n_hidden` is 4 or more."""
    right = four.members[truth]
    free = set(range(len(right.outputs))) - set(four.shown)
    wrong = [member for member in (*four.members, broken) if member is not right]
    failing = [sorted(free - right.agreement(member)) for member in wrong]
    if not all(failing):
        return None
    witnesses = list(dict.fromkeys(random.choice(places) for places in failing))
    rest = sorted(free - set(witnesses))
    hidden = witnesses + random.sample(rest, n_hidden - len(witnesses))
    return tuple(random.sample(hidden, len(hidden)))


def _choose_shown(
    right: Behaviour, alike: set[int], wanted: tuple[set[int], ...], n_examples: int, random: Random
) -> tuple[int, ...]:
    """One of each wanted set, then whatever brings outputs that are not shown yet."""
    shown = list(dict.fromkeys(random.choice(sorted(places)) for places in wanted if places))[:n_examples]
    rest = sorted(alike - set(shown))
    for place in random.sample(rest, len(rest)):
        if len(shown) < n_examples and right.outputs[place] not in {right.outputs[one] for one in shown}:
            shown.append(place)
    shown += random.sample(sorted(alike - set(shown)), n_examples - len(shown))
    return tuple(random.sample(shown, n_examples))
