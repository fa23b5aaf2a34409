"""Learning from gold outputs: order, learning rate, and a loss that only completions carry."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import Recorder, make_policy, plain_logprobs, random_ids

from loratrial.learning.optimizer import Optimizer
from loratrial.learning.warm_start import Example, batches, learning_rate_at, supervised_update
from loratrial.policy.completion import Completion

EXAMPLES = [
    Example(random_ids(9, 1), Completion([*random_ids(5, 2), 257], finish="stop")),
    Example(random_ids(4, 3), Completion([*random_ids(2, 4), 257], finish="stop")),
]


@settings(deadline=None, derandomize=True, max_examples=50)
@given(n=st.integers(1, 9), size=st.integers(1, 4), passes=st.integers(1, 3), seed=st.integers(0, 99))
def test_every_pass_takes_every_example_once(n, size, passes, seed):
    plan = batches(n, size, passes, seed)
    a_pass = -(-n // size)
    assert len(plan) == a_pass * passes
    for number in range(passes):
        taken = plan[number * a_pass : (number + 1) * a_pass]
        assert sorted(index for batch in taken for index in batch) == list(range(n))
        assert {len(batch) for batch in taken[:-1]} <= {size}


def test_the_order_of_a_pass_hangs_on_the_seed_and_on_the_pass():
    first, second = batches(8, 8, 2, seed=1)
    assert batches(8, 8, 2, seed=1) == [first, second]
    assert first != second
    assert batches(8, 8, 1, seed=2) != [first]
    assert batches(8, 2, 1, seed=1) == [first[:2], first[2:4], first[4:6], first[6:]]


def test_the_learning_rate_rises_in_a_line_and_stays_or_falls_in_a_line():
    rates = [learning_rate_at(update, 6, 1.0, 2, "constant") for update in range(6)]
    assert rates == pytest.approx([1 / 3, 2 / 3, 1, 1, 1, 1])
    rates = [learning_rate_at(update, 6, 1.0, 2, "linear") for update in range(6)]
    assert rates == pytest.approx([1 / 3, 2 / 3, 1, 3 / 4, 2 / 4, 1 / 4])
    assert [learning_rate_at(update, 4, 2.0, 0, "linear") for update in range(4)] == [2.0, 1.5, 1.0, 0.5]
    assert learning_rate_at(0, 1, 1.0, 5, "linear") == pytest.approx(1 / 6)


def test_the_loss_is_the_mean_over_completion_tokens_of_the_batch_and_prompts_carry_none():
    policy, plain = make_policy(), make_policy()
    plain.model.set_attn_implementation("sdpa")
    expected = [
        plain_logprobs(plain.model, each.prompt_ids, [each.completion.token_ids], 1.0)[0] for each in EXAMPLES
    ]
    loss = -torch.cat(expected).mean()
    loss.backward()
    recorder = Recorder(policy)
    figures = supervised_update(policy, recorder, EXAMPLES, 0.25, seed=1)
    assert figures == {
        "loss": pytest.approx(float(loss.detach())),
        "grad_norm": 1.5,
        "adapter_change": 0.0,
        "tokens": 9,
    }
    assert recorder.rates == [0.25]
    for name, value in plain.parameters.items():
        torch.testing.assert_close(
            recorder.gradients[name], value.grad, rtol=1e-4, atol=1e-5 * float(value.grad.abs().max())
        )


def test_the_loss_falls_and_the_version_counts_updates():
    policy = make_policy(strength=0.0)
    optimizer = Optimizer(policy.parameters, 0.01, 0.0, 1.0)
    losses = [supervised_update(policy, optimizer, EXAMPLES, 0.01, seed)["loss"] for seed in range(12)]
    assert losses[-1] < losses[0] / 2
    assert policy.version == 12


def test_dropout_hangs_on_the_seed_of_the_update_alone():
    losses = []
    for seed, noise in ((1, 10), (1, 20), (2, 10)):
        policy = make_policy(dropout=0.5)
        torch.manual_seed(noise)
        losses.append(supervised_update(policy, Recorder(policy), EXAMPLES, 0.1, seed)["loss"])
    assert losses[0] == losses[1] != losses[2]
