"""Sampling: what a row draws depends on its prompt, its seed and the policy, and on nothing beside it."""

import math
from collections import Counter

import numpy as np
import pytest
import torch
from small_models import random_ids

from loratrial.policy.completion import Choice, Completion
from loratrial.policy.policy import Policy
from loratrial.policy.sampler import Race, Request, sample

PROMPT = random_ids(23, 1)
OTHER_PROMPT = random_ids(9, 2)
SEEDS = [11, 12, 13, 14, 15]


@pytest.fixture(scope="module", params=["tiny", "tiny-llama"])
def policy(request, make_policy) -> Policy:
    return make_policy(request.param)


def draw(policy, *requests, temperature=1.5, eos_ids=None):
    with torch.no_grad():
        return sample(policy.model, requests, temperature, policy.eos_ids if eos_ids is None else eos_ids)


def assert_same(found: Completion, expected: Completion):
    assert found.token_ids == expected.token_ids
    assert found.finish == expected.finish
    assert found.logprobs == pytest.approx(expected.logprobs, abs=1e-5)


def race(seed, n_vocabulary):
    """The noise of one candidate: float32 exponentials, drawn token by token from a generator of its own."""
    generator = np.random.Generator(np.random.SFC64(seed))
    while True:
        yield torch.from_numpy(generator.standard_exponential(n_vocabulary, dtype=np.float32))


@pytest.mark.parametrize("temperature", [0.6, 1.0, 1.5])
def test_each_token_is_the_winner_of_its_race_over_plain_full_logits(policy, make_policy, temperature):
    name = policy.base.identity["base"]
    plain = make_policy(name)
    plain.model.set_attn_implementation("sdpa")
    (group,) = draw(policy, Request(PROMPT, SEEDS, 12), temperature=temperature)
    for seed, completion in zip(SEEDS, group, strict=True):
        ids = list(PROMPT)
        noises = race(seed, 261)
        for token, logprob in zip(completion.token_ids, completion.logprobs, strict=True):
            with torch.no_grad():
                logits = (
                    plain.model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1] / temperature
                )
            winner = int((logits - next(noises).log()).argmax())
            assert winner == token
            assert logprob == pytest.approx(float(logits.log_softmax(-1)[token]), abs=1e-5)
            ids.append(token)


def test_a_candidate_is_the_same_alone_in_its_group_and_beside_other_groups(policy):
    request = Request(PROMPT, SEEDS, 16)
    (group,) = draw(policy, request)
    beside = draw(policy, Request(OTHER_PROMPT, [5, 6], 16), request, Request([1], [7], 16))[1]
    for seed, in_group, among_groups in zip(SEEDS, group, beside, strict=True):
        ((alone,),) = draw(policy, Request(PROMPT, [seed], 16))
        assert_same(in_group, alone)
        assert_same(among_groups, alone)
    assert len({tuple(completion.token_ids) for completion in group}) == len(SEEDS)


def test_another_prompt_in_the_row_beside_moves_nothing(policy):
    request = Request(PROMPT, SEEDS[:2], 10)
    first = draw(policy, request, Request(OTHER_PROMPT, SEEDS[2:], 10))
    second = draw(policy, request, Request(random_ids(9, 77), SEEDS[2:], 10))
    for ours, theirs in zip(first[0], second[0], strict=True):
        assert_same(ours, theirs)
    assert [each.token_ids for each in first[1]] != [each.token_ids for each in second[1]]


def test_rows_that_end_early_change_no_row_that_goes_on(policy):
    """Half of all tokens end a row here, so that rows and whole groups drop out at nearly every step."""
    ends = range(0, 261, 2)
    requests = [Request(PROMPT, range(20, 28), 12), Request(OTHER_PROMPT, range(30, 34), 12)]
    together = draw(policy, *requests, eos_ids=ends)
    lengths = set()
    for request, group in zip(requests, together, strict=True):
        for seed, completion in zip(request.seeds, group, strict=True):
            ((alone,),) = draw(policy, Request(request.prompt_ids, [seed], 12), eos_ids=ends)
            assert_same(completion, alone)
            lengths.add(len(completion.token_ids))
    assert len(lengths) > 2


def test_requests_of_unequal_caps_each_end_at_their_own(policy):
    short, long = draw(policy, Request(PROMPT, SEEDS, 2), Request(PROMPT, SEEDS, 9), eos_ids=())
    assert {len(each.token_ids) for each in short} == {2}
    assert {len(each.token_ids) for each in long} == {9}
    for ours, theirs in zip(short, long, strict=True):
        assert ours.token_ids == theirs.token_ids[:2]


def test_a_capped_row_is_length_and_an_ended_one_is_stop_with_its_end_token(policy):
    (free,) = draw(policy, Request(PROMPT, SEEDS, 8), eos_ids=())
    assert {each.finish for each in free} == {"length"}
    ends = (free[0].token_ids[3], free[1].token_ids[7])
    (group,) = draw(policy, Request(PROMPT, SEEDS, 8), eos_ids=ends)
    for ours, unended in zip(group, free, strict=True):
        at = next((i for i, token in enumerate(unended.token_ids) if token in ends), None)
        assert ours.token_ids == unended.token_ids[: None if at is None else at + 1]
        assert ours.finish == ("length" if at is None else "stop")
    assert [group[0].finish, group[1].finish] == ["stop", "stop"]
    assert group[0].token_ids[-1] != group[1].token_ids[-1]
    assert len(group[1].token_ids) == 8  # an end in the very last place is an end, not a cut


def test_every_end_of_sequence_id_of_the_model_ends_a_row(policy):
    assert policy.eos_ids == (257, 258)
    groups = draw(policy, *(Request(random_ids(6, n), range(40, 60), 40) for n in range(6)))
    completions = [each for group in groups for each in group]
    stopped = [each for each in completions if each.finish == "stop"]
    assert {each.token_ids[-1] for each in stopped} == {257, 258}
    assert all(not {257, 258} & set(each.token_ids[:-1]) for each in completions)
    assert all(len(each.token_ids) == 40 for each in completions if each.finish == "length")


@pytest.mark.parametrize("cap", [0, -3])
def test_a_request_without_room_gets_empty_completions_and_changes_no_other(policy, cap):
    request = Request(PROMPT, SEEDS, 5)
    empty, group = draw(policy, Request(OTHER_PROMPT, [1, 2], cap), request)
    assert [(each.token_ids, each.logprobs) for each in empty] == [([], [])] * 2
    for ours, theirs in zip(group, draw(policy, request)[0], strict=True):
        assert_same(ours, theirs)
    assert draw(policy, Request(OTHER_PROMPT, [1], cap)) == [[Completion()]]


@pytest.mark.parametrize("temperature", [1.0, 1.5])
def test_sampler_and_trainer_agree_on_every_log_probability(policy, temperature):
    (group,) = policy.sample([Request(PROMPT, SEEDS, 20)], temperature)
    with torch.no_grad():
        scored = policy.logprobs(PROMPT, group, temperature)
        wrong = policy.logprobs(PROMPT, group, temperature**2 + 0.5)
    for completion, values, others in zip(group, scored, wrong, strict=True):
        assert completion.logprobs == pytest.approx(values.tolist(), abs=1e-4)
        assert max(abs(a - b) for a, b in zip(completion.logprobs, others.tolist(), strict=True)) > 0.01


def test_policies_of_equal_weights_draw_the_same_tokens_and_others_do_not(policy, make_policy):
    name = policy.base.identity["base"]
    request = Request(PROMPT, SEEDS, 16)
    expected = [each.token_ids for each in policy.sample([request], 1.5)[0]]
    assert [each.token_ids for each in make_policy(name).sample([request], 1.5)[0]] == expected
    other = make_policy(name, strength=2.0)
    assert [each.token_ids for each in other.sample([request], 1.5)[0]] != expected


def test_with_the_adapter_off_the_base_is_sampled(policy, make_policy):
    base = make_policy(policy.base.identity["base"], strength=0.0)
    request = Request(PROMPT, SEEDS, 16)
    with policy.adapter_off():
        off = policy.sample([request], 1.5)[0]
    for ours, theirs in zip(off, base.sample([request], 1.5)[0], strict=True):
        assert_same(ours, theirs)


def test_winners_come_as_often_as_their_probability_says():
    n = 20_000
    logits = torch.tensor([1.0, 0.0, -1.0, 2.0])
    probabilities = (logits / 1.5).softmax(-1)
    generators = [np.random.Generator(np.random.SFC64(seed)) for seed in range(n)]
    winners, logprobs = Race(n, 4).draw(generators, logits.expand(n, 4), 1.5)
    counts = Counter(winners.tolist())
    chi_square = sum((counts[i] - n * float(p)) ** 2 / (n * float(p)) for i, p in enumerate(probabilities))
    assert chi_square < 11.34  # the 99th percentile with 3 degrees of freedom
    assert torch.allclose(logprobs, probabilities.log()[winners])


def test_a_generator_goes_on_where_its_row_stood_when_others_are_dropped():
    flat = torch.zeros(3, 50)
    first, second = ([np.random.Generator(np.random.SFC64(seed)) for seed in (1, 2, 3)] for _ in range(2))
    whole, dropped = Race(3, 50), Race(3, 50)
    whole.draw(first, flat, 1.0)
    dropped.draw(second, flat, 1.0)
    expected, _ = whole.draw(first, flat, 1.0)
    found, logprobs = dropped.draw([second[0], second[2]], flat[:2], 1.0)
    assert found.tolist() == [expected[0], expected[2]]
    assert logprobs.tolist() == pytest.approx([-math.log(50)] * 2)


LABELS = Choice(supplied_ids=(65, 58, 32), label_ids=(97, 98, 99, 100))


def without(completion: Completion) -> Completion:
    """The free text of a completion alone."""
    n = completion.n_free
    return Completion(completion.token_ids[:n], completion.logprobs[:n], completion.finish)


def test_the_free_text_before_a_choice_is_what_is_drawn_without_one(policy):
    (plain,) = draw(policy, Request(PROMPT, range(12), 9), eos_ids=range(0, 261, 30))
    (group,) = draw(policy, Request(PROMPT, range(12), 9, LABELS), eos_ids=range(0, 261, 30))
    for ours, theirs in zip(group, plain, strict=True):
        assert_same(without(ours), theirs)
        assert ours.token_ids[-1] in LABELS.label_ids
    assert {each.finish for each in group} == {"stop", "length"}


def test_a_label_is_the_winner_of_a_race_among_the_labels_over_plain_full_logits(policy, make_policy):
    plain = make_policy(policy.base.identity["base"])
    plain.model.set_attn_implementation("sdpa")
    for cap in (0, 6):
        (group,) = draw(policy, Request(PROMPT, SEEDS, cap, LABELS), eos_ids=range(0, 261, 30))
        for seed, completion in zip(SEEDS, group, strict=True):
            read = completion.token_ids[: completion.n_reasoning]
            ids = torch.tensor([[*PROMPT, *read, *LABELS.supplied_ids]])
            with torch.no_grad():
                logits = (
                    plain.model(input_ids=ids, use_cache=False).logits[0, -1, list(LABELS.label_ids)] / 1.5
                )
            noise = np.random.Generator(np.random.SFC64([seed, 1])).standard_exponential(4, dtype=np.float32)
            winner = int((logits - torch.from_numpy(noise).log()).argmax())
            assert LABELS.label_ids[winner] == completion.token_ids[-1]
            assert completion.logprobs[-1] == pytest.approx(float(logits.log_softmax(-1)[winner]), abs=1e-5)


def test_without_room_for_text_the_label_comes_at_once(policy):
    (group,) = draw(policy, Request(PROMPT, range(40), 0, LABELS))
    assert {len(each.token_ids) for each in group} == {1}
    assert {each.n_reasoning for each in group} == {0}
    assert len({each.token_ids[0] for each in group}) > 1


def test_rows_that_choose_beside_rows_that_still_write_are_as_alone(policy):
    ends = range(0, 261, 5)
    requests = [
        Request(PROMPT, range(20, 26), 12, LABELS),
        Request(OTHER_PROMPT, range(30, 34), 7),
        Request(random_ids(5, 9), range(50, 53), 0, Choice((70,), (1, 2))),
    ]
    together = draw(policy, *requests, eos_ids=ends)
    for request, group in zip(requests, together, strict=True):
        for seed, completion in zip(request.seeds, group, strict=True):
            alone = Request(request.prompt_ids, [seed], request.max_tokens, request.choice)
            assert_same(completion, draw(policy, alone, eos_ids=ends)[0][0])


@pytest.mark.parametrize("cap", [0, 8])
def test_sampler_and_trainer_agree_on_every_log_probability_of_a_choice(policy, cap):
    with torch.no_grad():
        (group,) = sample(policy.model, [Request(PROMPT, range(60, 70), cap, LABELS)], 1.5, range(0, 261, 9))
        scored = policy.logprobs(PROMPT, group, 1.5)
    for completion, values in zip(group, scored, strict=True):
        assert completion.logprobs == pytest.approx(values.tolist(), abs=1e-4)
