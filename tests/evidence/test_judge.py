import math

import pytest
from evidence_toy import ToyOptions, ToyTask

from loratrial.errors import ScorerError
from loratrial.evidence.judge import REFUSED, carried_state, judge
from loratrial.tasks.task import Reading, Score

TASK = ToyTask.create(ToyOptions(), None, 5)
ITEM = TASK.dataset.streams[0].items[0]


def reading(state: str, valid: bool = True) -> Reading:
    return Reading(valid, state)


def test_candidate_zero_is_carried_even_when_it_is_the_worst():
    assert carried_state([reading("worst"), reading("best")], "before") == "worst"


def test_an_invalid_candidate_zero_leaves_the_state_as_it_came_in():
    assert carried_state([reading("claimed", valid=False), reading("best")], "before") == "before"


def test_a_refused_prompt_is_an_invalid_reading_and_is_scored_as_one():
    found, score = judge(TASK, ITEM, "", "refused", "red")
    assert found == Reading(valid=False, state="red", problem=REFUSED)
    assert score.reward == 0


class Broken(ToyTask):
    def read(self, item, text, state):
        raise KeyError("colour")


class Endless(ToyTask):
    def score(self, target, reading):
        return Score(1, {"recall": math.nan})


@pytest.mark.parametrize(
    ("task", "message"),
    [(Broken, r"stream 's0' item 0: KeyError: 'colour'"), (Endless, "gave recall nan")],
)
def test_a_task_that_fails_stops_the_run_and_is_no_reward_of_zero(task, message):
    with pytest.raises(ScorerError, match=message):
        judge(task(TASK.dataset), ITEM, "red", "stop", "")
