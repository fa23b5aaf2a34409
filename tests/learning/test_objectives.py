"""The losses of single tokens, and where their gradients stop, worked out by hand."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from loratrial.learning.objectives import grpo_token_losses, kl_tokens, reinforce_token_losses


def _value_and_slope(function, logprob):
    tensor = torch.tensor([logprob], dtype=torch.float64, requires_grad=True)
    (value,) = function(tensor)
    value.backward()
    return float(value.detach()), float(tensor.grad)


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "slope"),
    [
        (1.0, 2.0, -2.0, -2.0),
        (1.1, 2.0, -2.2, -2.2),
        (1.5, 2.0, -2.4, 0.0),  # already likelier than 1 + c: no more of it
        (0.5, 2.0, -1.0, -1.0),  # less likely, though it was good: not held back
        (0.5, -2.0, 1.6, 0.0),  # already less likely than 1 - c: no more of it
        (1.5, -2.0, 3.0, 3.0),  # likelier, though it was bad: not held back
        (0.9, -2.0, 1.8, 1.8),
    ],
)
def test_the_ratio_is_clipped_in_both_directions_and_only_where_it_would_gain(ratio, advantage, loss, slope):
    old = torch.tensor([-1.3], dtype=torch.float64)
    weight = torch.tensor([advantage], dtype=torch.float64)
    found = _value_and_slope(lambda x: grpo_token_losses(x, old, weight, 0.2), -1.3 + math.log(ratio))
    assert found == pytest.approx((loss, slope))


def test_kl_by_hand():
    # d = reference - policy = ln 2: 2 - ln 2 - 1, slope 1 - 2
    reference = torch.tensor([-1.0], dtype=torch.float64)
    found = _value_and_slope(lambda x: kl_tokens(x, reference), -1.0 - math.log(2))
    assert found == pytest.approx((1 - math.log(2), -1.0))


@settings(deadline=None, derandomize=True, max_examples=100)
@given(logprob=st.floats(-30, 0, width=32), reference=st.floats(-30, 0, width=32))
def test_kl_is_never_negative_and_exactly_nothing_where_policy_and_reference_agree(logprob, reference):
    values = kl_tokens(torch.tensor([logprob, logprob]), torch.tensor([reference, logprob]))
    assert values[0] >= 0
    assert values[1] == 0
    assert _value_and_slope(lambda x: kl_tokens(x, x.detach()), logprob) == (0, 0)


def test_reinforce_by_hand():
    weight = torch.tensor([1.5], dtype=torch.float64)
    assert _value_and_slope(lambda x: reinforce_token_losses(x, weight), -2.0) == (3.0, -1.5)
