"""How one answer is read, scored and carried: the rules that a walk follows and a recount follows again.

One place for both, so that they cannot part. Left out: sampling, and whatever depends on other candidates.
"""

import math
from collections.abc import Sequence

from loratrial.errors import ScorerError
from loratrial.evidence.ledger import Finish
from loratrial.tasks.task import Item, Reading, Score, State, Task

REFUSED = "the prompt leaves no room for an answer"
"""The problem of a candidate that was never sampled, because its prompt is too long."""


def judge(task: Task, item: Item, text: str, finish: Finish, state: State) -> tuple[Reading, Score]:
    """What the task makes of one answer to `item`, given with `state` carried in.

    `item` is as the prompt showed it (`tasks.choosing.shown`). A refused prompt has no answer to read: its
    reading is invalid, and scored as such. Raises ScorerError when the task fails or gives a number that is
    not finite: never a reward of 0.
    """
    where = f"stream {item.stream!r} item {item.index}"
    try:
        reading = (
            Reading(valid=False, state=state, problem=REFUSED)
            if finish == "refused"
            else task.read(item, text, state)
        )
        score = task.score(task.dataset.target(item), reading)
    except Exception as error:
        raise ScorerError(
            f"task {task.kind!r} failed on an answer to {where}: {type(error).__name__}: {error}"
        ) from error
    for name, number in [("reward", score.reward), *score.figures.items()]:
        if not math.isfinite(number):
            raise ScorerError(f"task {task.kind!r} gave {name} {number!r} to an answer to {where}")
    return reading, score


def carried_state(readings: Sequence[Reading], state: State) -> State:
    """What a stream goes on with: the state after candidate 0 whatever its reward, or, where that is
    invalid, `state` as it came in."""
    first = readings[0]
    return first.state if first.valid else state


def answer_figures(reading: Reading, score: Score) -> dict[str, int | float]:
    """Every number of one answer by name: the task's figures, and the raw reward and validity beside them."""
    return {"reward": score.reward, "valid": int(reading.valid), **score.figures}
