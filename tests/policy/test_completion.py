"""What the model reads of a completion, and after which of that it drew each token."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loratrial.policy.completion import Choice, Completion

CHOICE = Choice(supplied_ids=(50, 51), label_ids=(1, 2))


@pytest.mark.parametrize(
    ("completion", "inputs", "predictors", "n_reasoning"),
    [
        (Completion([7, 8, 9]), [7, 8, 9], [-1, 0, 1], 3),
        (Completion([7, 8, 9], finish="stop"), [7, 8, 9], [-1, 0, 1], 2),
        (Completion([7, 8, 2], finish="length", choice=CHOICE), [7, 8, 50, 51], [-1, 0, 3], 2),
        (Completion([7, 9, 2], finish="stop", choice=CHOICE), [7, 50, 51], [-1, 0, 2], 1),
        (Completion([9, 2], finish="stop", choice=CHOICE), [50, 51], [-1, 1], 0),
        (Completion([2], finish="stop", choice=CHOICE), [50, 51], [1], 0),
    ],
)
def test_an_end_token_is_drawn_but_not_read_before_a_choice(completion, inputs, predictors, n_reasoning):
    assert completion.inputs == inputs
    assert completion.predictors == predictors
    assert completion.n_reasoning == n_reasoning


@given(st.lists(st.integers(0, 9), max_size=6), st.booleans(), st.booleans())
def test_every_drawn_token_has_one_predictor_that_comes_before_it(text, ended, choosing):
    ids = [*text, *([257] if ended else []), *([1] if choosing else [])]
    completion = Completion(ids, finish="stop" if ended else "length", choice=CHOICE if choosing else None)
    assert len(completion.predictors) == len(ids)
    assert completion.n_reasoning == len(text)
    assert completion.predictors == sorted(set(completion.predictors))
    assert all(-1 <= place < len(completion.inputs) for place in completion.predictors)
