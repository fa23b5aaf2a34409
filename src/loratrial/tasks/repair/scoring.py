"""Running a candidate on stored cases with the restricted evaluator.

A case is stored as JSON: inputs by name and the right output, each a literal of the language, so that tuples
and lists, `1` and `True` stay apart. Reading one is evaluating it with no inputs.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from loratrial.errors import DataError
from loratrial.tasks.repair.evaluator import evaluate
from loratrial.tasks.repair.language import Expression, parse
from loratrial.tasks.repair.values import Outcome, Plain, Refusal, Value, same

# The same literals and candidates are read for every sampled answer; trees are never edited.
_parsed = lru_cache(maxsize=8192)(parse)

StoredCase = Mapping[str, Any]
"""`{"inputs": {name: literal}, "output": literal}`."""


def read_literal(text: str) -> Plain:
    """The value that a literal writes; raises `DataError` for a text that has none."""
    outcome = outcome_on(_parsed(text), {"inputs": {}})
    if isinstance(outcome, Refusal):
        raise DataError(f"repair: the stored value {text[:60]!r} cannot be read ({outcome.kind}); regenerate")
    return outcome.value


def outcome_on(expression: Expression | Refusal, case: StoredCase) -> Outcome:
    """What a parsed expression gives for the inputs of a case."""
    if isinstance(expression, Refusal):
        return expression
    return evaluate(expression, {name: read_literal(text) for name, text in case["inputs"].items()})


def failures(source: str, cases: Sequence[StoredCase]) -> list[int]:
    """The places of the cases on which an expression does not give the stored output, type and value."""
    expression = _parsed(source)
    failed = []
    for place, case in enumerate(cases):
        outcome = outcome_on(expression, case)
        if not (isinstance(outcome, Value) and same(outcome.value, read_literal(case["output"]))):
            failed.append(place)
    return failed
