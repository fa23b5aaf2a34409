"""One look at sampled groups: what teaches, what does not, and gradients against losses written out."""

from dataclasses import replace

import pytest
import torch
from small_models import Recorder, assert_close_gradients, lengths_to_ids, make_policy, random_ids, said, stir

from loratrial.learning import learner as module
from loratrial.learning.group import Group
from loratrial.learning.learner import Learner, Objective
from loratrial.learning.optimizer import Optimizer
from loratrial.policy.completion import Completion

TEMPERATURE = 1.5
GRPO = Objective("group_std", TEMPERATURE, clip_ratio=0.2, kl_penalty=0.3)
REINFORCE = Objective("leave_one_out", TEMPERATURE)


def group(rewards, ordinal=0, valid=None, lengths=None, policy=None, seed=5):
    """A group of bytes; its sampled log-probabilities are the policy's, where one is given."""
    lengths = lengths or [3 + i % 3 for i in range(len(rewards))]
    prompt, completions = random_ids(10 + ordinal, seed), lengths_to_ids(lengths, seed)
    logprobs = [[0.0] * n for n in lengths]
    if policy:
        with torch.no_grad():
            logprobs = [value.tolist() for value in policy.logprobs(prompt, said(completions), TEMPERATURE)]
    sampled = [Completion(ids, values) for ids, values in zip(completions, logprobs, strict=True)]
    return Group(ordinal, [prompt] * len(rewards), sampled, rewards, valid or [True] * len(rewards))


def recorded(policy, objective, groups, reference=None, per_pass=0):
    """The lines and the gradients of one look at `groups`."""
    recorder = Recorder(policy)
    lines = Learner(policy, recorder, objective, reference, per_pass).learn(groups)
    return lines, recorder.gradients


def logprobs_of(policy, each):
    return policy.logprobs(each.prompts[0], each.completions, TEMPERATURE)


def collected(policy):
    found = {}
    for name, value in policy.parameters.items():
        found[name], value.grad = value.grad, None
    return found


def test_the_gradient_of_grpo_is_that_of_the_loss_written_out():
    policy, reference = make_policy(), make_policy(seed=9, strength=0.5).state()
    groups = [group([0, 2, 2, 4]), group([1, 0], ordinal=1)]
    with policy.with_state(reference), torch.no_grad():
        references = [logprobs_of(policy, each) for each in groups]
    loss = kl = 0.0
    for each, advantages, theirs in zip(
        groups, ([-(2**0.5), 0, 0, 2**0.5], [1.0, -1.0]), references, strict=True
    ):
        n_tokens = sum(len(c.token_ids) for c in each.completions)
        for ours, advantage, their in zip(logprobs_of(policy, each), advantages, theirs, strict=True):
            ratio = (ours - ours.detach()).exp()
            difference = their - ours
            divergence = difference.exp() - difference - 1
            loss = loss + (-advantage * ratio + 0.3 * divergence).sum() / n_tokens / 2
            kl += float(divergence.detach().sum()) / n_tokens / 2
    loss.backward()
    expected = collected(policy)
    (line,), found = recorded(policy, GRPO, groups, reference)
    assert_close_gradients(found, expected, 1e-5)
    assert line["loss"] == pytest.approx(float(loss.detach()), rel=1e-5)
    assert line["kl"] == pytest.approx(kl, rel=1e-5)
    assert kl > 0.01


def test_the_gradient_of_reinforce_is_that_of_the_loss_written_out():
    policy = make_policy()
    groups = [group([0, 2, 2, 4]), group([1, 0], ordinal=1)]
    loss = 0.0
    for each, advantages in zip(groups, ([-8 / 3, 0, 0, 8 / 3], [1.0, -1.0]), strict=True):
        for ours, advantage in zip(logprobs_of(policy, each), advantages, strict=True):
            loss = loss - advantage * ours.sum() / len(each.completions) / 2
    loss.backward()
    expected = collected(policy)
    (line,), found = recorded(policy, REINFORCE, groups)
    assert_close_gradients(found, expected, 1e-5)
    assert line["loss"] == pytest.approx(float(loss.detach()), rel=1e-5)
    assert line["kl"] == 0.0


def test_kl_is_exactly_nothing_at_the_first_step_from_a_fresh_adapter_and_from_a_trained_one():
    for policy, reference in ((make_policy(strength=0.0), None), (make_policy(strength=1.0), "itself")):
        for per_pass in (0, 1, 2):
            (line,), _ = recorded(
                policy, GRPO, [group([0, 1, 5])], policy.state() if reference else None, per_pass
            )
            assert line["kl"] == 0.0


def test_the_reference_of_a_trained_start_is_that_adapter_and_not_the_base():
    policy = make_policy(strength=1.0)
    (to_start,), _ = recorded(policy, GRPO, [group([0, 1, 5])], policy.state())
    (to_base,), _ = recorded(policy, GRPO, [group([0, 1, 5])], None)
    assert to_start["kl"] == 0.0
    assert to_base["kl"] > 0.01


def test_the_reference_stays_where_training_started():
    policy = make_policy()
    learner = Learner(policy, Optimizer(policy.parameters, 0.01, 0.0, 1.0), GRPO, policy.state())
    divergences = [learner.learn([group([0, 1, 5], seed=seed)])[0]["kl"] for seed in range(3)]
    assert divergences[0] == 0.0 < divergences[1] < divergences[2]


@pytest.mark.parametrize("objective", [GRPO, REINFORCE])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_one_pass_of_eight_is_eight_passes_of_one(objective, checkpointing):
    def policy():
        return make_policy(gradient_checkpointing=checkpointing)

    reference = make_policy(seed=9).state()
    groups = [group([0, 1, 5, 2, 2, 0, 7, 1], lengths=[3, 1, 4, 1, 5, 9, 2, 6]), group([3, 0, 0], ordinal=1)]
    (whole,), expected = recorded(policy(), objective, groups, reference)
    for per_pass in (1, 3, 8):
        (line,), found = recorded(policy(), objective, groups, reference, per_pass)
        assert_close_gradients(found, expected, 5e-6)
        assert line["loss"] == pytest.approx(whole["loss"], rel=1e-6)
        assert line["kl"] == pytest.approx(whole["kl"], abs=1e-6)


def test_a_learned_adapter_does_not_depend_on_how_a_group_is_split_over_passes():
    ends = []
    for per_pass in (0, 1, 3):
        policy = make_policy()
        learner = Learner(
            policy, Optimizer(policy.parameters, 1e-4, 0.0, 1.0), GRPO, policy.state(), per_pass
        )
        for seed in range(3):
            learner.learn([group([0, 1, 5, 2], seed=seed)])
        ends.append(policy.state())
    start = make_policy().state()
    for name, value in ends[0].items():
        assert (value - start[name]).abs().max() > 1e-4
        for other in ends[1:]:
            torch.testing.assert_close(other[name], value, rtol=0, atol=1e-6)


def test_gradient_checkpointing_changes_no_gradient():
    reference = make_policy(seed=9).state()
    groups = [group([0, 1, 5])]
    lines, expected = recorded(make_policy(), GRPO, groups, reference)
    again, found = recorded(make_policy(gradient_checkpointing=True), GRPO, groups, reference)
    assert all(torch.equal(found[name], value) for name, value in expected.items())
    memory = {"peak_memory_bytes": 0}
    assert [{**line, **memory} for line in again] == [{**line, **memory} for line in lines]


def test_four_times_two_fifths_teach_nothing_and_leave_the_adapter_as_it_was():
    policy = make_policy()
    before = policy.state()
    optimizer = Optimizer(policy.parameters, 0.01, 0.1, 1.0)
    (line,) = Learner(policy, optimizer, GRPO, make_policy(seed=9).state()).learn([group([0.4] * 4)])
    assert line["update"] is None
    assert line["groups"] == [
        {"group": 0, "rewards": [0.4] * 4, "tied": True, "skipped": "tied", "advantages": [0.0] * 4}
    ]
    assert line["tokens"] == 3 + 4 + 5 + 3
    assert policy.version == 0
    assert optimizer.state() == {}
    assert all(torch.equal(value, before[name]) for name, value in policy.state().items())


def test_groups_that_teach_nothing_get_no_forward_pass_and_no_share_in_the_mean(monkeypatch):
    teaching, tied = group([0, 1, 5]), group([0.4] * 4, ordinal=1)
    invalid = group([0, 3], ordinal=2, valid=[False, False])
    reference = make_policy(seed=9).state()
    (alone,), expected = recorded(make_policy(), GRPO, [teaching], reference)
    policy = make_policy()
    scored = []
    logprobs = policy.logprobs
    monkeypatch.setattr(policy, "logprobs", lambda p, *rest: scored.append(tuple(p)) or logprobs(p, *rest))
    (line,), found = recorded(policy, GRPO, [tied, teaching, invalid], reference)
    assert all(torch.equal(found[name], value) for name, value in expected.items())
    assert (line["loss"], line["kl"]) == (alone["loss"], alone["kl"])
    assert set(scored) == {tuple(teaching.prompts[0])}


def test_a_group_with_nothing_valid_says_so_whatever_its_rewards():
    (line,), gradients = recorded(make_policy(), GRPO, [group([0, 3], valid=[False, False])])
    assert line["update"] is None
    assert (line["groups"][0]["skipped"], line["groups"][0]["tied"]) == ("no valid candidate", False)
    assert line["groups"][0]["advantages"] == [0.0, 0.0]
    assert gradients == {}


def test_a_line_holds_raw_rewards_advantages_and_counts_updates_from_the_version():
    policy = make_policy()
    policy.version = 4
    learner = Learner(policy, Optimizer(policy.parameters, 0.01, 0.0, 1.0), GRPO, policy.state())
    tied, taught = group([1, 1]), group([0, 2, 2, 4], ordinal=1)
    lines = learner.learn([tied]) + learner.learn([taught]) + learner.learn([taught])
    assert [line["update"] for line in lines] == [None, 4, 5]
    (entry,) = lines[1]["groups"]
    assert (entry["group"], entry["rewards"], entry["skipped"]) == (1, [0, 2, 2, 4], "")
    assert entry["advantages"] == pytest.approx([-(2**0.5), 0, 0, 2**0.5])
    assert lines[1]["grad_norm"] > 0 < lines[1]["adapter_change"]
    assert lines[1]["peak_memory_bytes"] > 1_000_000


def test_the_largest_gap_between_sampler_and_trainer_is_told():
    policy = make_policy()
    honest = group([0, 1, 5], policy=policy)
    (line,), _ = recorded(policy, GRPO, [honest])
    assert line["max_logprob_difference"] < 1e-4
    honest.completions[1].logprobs[2] -= 0.25
    for per_pass in (0, 1):
        (line,), _ = recorded(
            policy, GRPO, [group([1, 0], ordinal=1, policy=policy), honest], per_pass=per_pass
        )
        assert line["max_logprob_difference"] == pytest.approx(0.25, abs=1e-4)


def test_a_second_update_on_a_group_is_weighed_against_the_policy_that_sampled_it(monkeypatch):
    seen = []
    losses = module.grpo_token_losses

    def spied(logprobs, old, advantages, clip):
        seen.append((logprobs.detach().clone(), old.clone()))
        return losses(logprobs, old, advantages, clip)

    monkeypatch.setattr(module, "grpo_token_losses", spied)
    policy = make_policy()
    objective = replace(GRPO, updates_per_group=3)
    learner = Learner(policy, Optimizer(policy.parameters, 0.02, 0.0, 1.0), objective, policy.state(), 2)
    lines = learner.learn([group([0, 1, 5, 2])])
    assert [line["update"] for line in lines] == [0, 1, 2]
    assert policy.version == 3
    first, later = seen[:2], (seen[2:4], seen[4:])
    for part, (logprobs, old) in enumerate(first):
        assert torch.equal(logprobs, old)
        for again in later:
            assert torch.equal(again[part][1], logprobs)
            assert not torch.equal(again[part][0], logprobs)
    assert lines[0]["kl"] == 0.0 < lines[1]["kl"]


def test_a_ratio_beyond_the_clip_stops_moving_the_policy(monkeypatch):
    """The same group again and again, with no KL: what is clipped gives no gradient any more."""
    policy = make_policy()
    objective = replace(GRPO, kl_penalty=0.0, updates_per_group=40)
    learner = Learner(policy, Optimizer(policy.parameters, 0.02, 0.0, 1.0), objective, None)
    lines = learner.learn([group([0, 1])])
    assert lines[0]["loss"] == pytest.approx(-lines[0]["groups"][0]["advantages"][1] * (4 - 3) / 7, abs=1e-5)
    assert min(line["grad_norm"] for line in lines) == 0.0 < lines[0]["grad_norm"]


def test_without_a_kl_penalty_no_reference_is_computed(monkeypatch):
    policy = make_policy()
    monkeypatch.setattr(policy, "adapter_off", None)
    stir(policy, 0.2)
    (line,), _ = recorded(policy, replace(GRPO, kl_penalty=0.0), [group([0, 1, 5])])
    assert line["kl"] == 0.0


def test_empty_completions_stand_in_a_group_without_harm():
    (line,), gradients = recorded(make_policy(), GRPO, [group([0, 1, 5], lengths=[0, 4, 0])])
    assert line["update"] == 0
    assert all(value.isfinite().all() for value in gradients.values())
