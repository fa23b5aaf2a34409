"""Log-probabilities of a flat row against plain transformers: one row a completion, full logits, no plan."""

import pytest
import torch
from small_models import (
    assert_close_gradients,
    gradients,
    lengths_to_ids,
    plain_logprobs,
    random_ids,
    said,
    stir,
)

from loratrial.policy import logprobs as module
from loratrial.policy.attention import IMPLEMENTATION
from loratrial.policy.completion import Choice, Completion
from loratrial.policy.logprobs import completion_logprobs, token_logprobs

CASES = {
    "one": (7, (5,)),
    "odd lengths": (13, (1, 6, 3)),
    "with empty ones": (9, (0, 4, 0, 1)),
    "only an empty one": (4, (0,)),
    "a prompt of one token": (1, (2, 3)),
    "a group of eight": (31, (8, 1, 5, 5, 0, 2, 11, 3)),
}


def assert_same(policy, expected_policy, prompt_ids, completions, temperature, tolerance):
    found = completion_logprobs(policy.model, prompt_ids, said(completions), temperature)
    expected = plain_logprobs(expected_policy.model, prompt_ids, completions, temperature)
    assert [len(value) for value in found] == [len(ids) for ids in completions]
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, **tolerance)
    if not sum(map(len, completions)):
        return
    assert_close_gradients(gradients(policy, found), gradients(expected_policy, expected), tolerance["rtol"])


@pytest.fixture(scope="module", params=["tiny", "tiny-llama"])
def pair(request, make_policy):
    """The same policy twice: on this package's attention, and on what transformers has of its own."""
    return make_policy(request.param), make_policy(request.param)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("case", CASES)
def test_a_flat_row_gives_the_values_and_gradients_of_one_row_a_completion(pair, attention, case):
    policy, plain = pair
    plain.model.set_attn_implementation(attention)
    n_prompt, lengths = CASES[case]
    completions = lengths_to_ids(lengths)
    for temperature in (1.0, 1.5):
        tolerance = {"rtol": 1e-5, "atol": 1e-5}
        assert_same(policy, plain, random_ids(n_prompt, 1), completions, temperature, tolerance)


class _Float64Norm(torch.nn.Module):
    """Root mean square norm that keeps float64, where the libraries' own go through float32."""

    def __init__(self, norm):
        super().__init__()
        self.weight, self.epsilon = norm.weight, norm.variance_epsilon

    def forward(self, hidden):
        return self.weight * hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + self.epsilon)


def _in_float64(policy):
    policy.model.double()
    for parent in list(policy.model.modules()):
        for name, child in list(parent.named_children()):
            if type(child).__name__.endswith("RMSNorm"):
                setattr(parent, name, _Float64Norm(child))
    return policy


@pytest.mark.parametrize("name", ["tiny", "tiny-llama"])
@pytest.mark.parametrize("case", ["with empty ones", "a group of eight"])
def test_in_float64_a_flat_row_is_one_row_a_completion_to_ten_digits(make_policy, name, case):
    policy, plain = _in_float64(make_policy(name)), _in_float64(make_policy(name))
    plain.model.set_attn_implementation("sdpa")
    n_prompt, lengths = CASES[case]
    tolerance = {"rtol": 1e-10, "atol": 1e-10}
    assert_same(policy, plain, random_ids(n_prompt, 1), lengths_to_ids(lengths), 1.5, tolerance)


def test_changing_one_completion_moves_no_other(pair):
    policy = pair[0]
    prompt, completions = random_ids(11, 2), lengths_to_ids((4, 6, 5))
    before = policy.logprobs(prompt, said(completions), 1.0)
    changed = [completions[0], random_ids(6, 99), completions[2]]
    after = policy.logprobs(prompt, said(changed), 1.0)
    assert torch.equal(before[0], after[0])
    assert torch.equal(before[2], after[2])
    assert not torch.equal(before[1], after[1])


def test_a_completions_values_do_not_depend_on_how_many_stand_beside_it(pair):
    policy = pair[0]
    prompt, completions = random_ids(11, 2), lengths_to_ids((4, 6, 5, 1))
    together = policy.logprobs(prompt, said(completions), 1.5)
    for ids, expected in zip(completions, together, strict=True):
        (alone,) = policy.logprobs(prompt, said([ids]), 1.5)
        torch.testing.assert_close(alone, expected, rtol=0, atol=1e-5)


def test_values_and_gradients_do_not_depend_on_the_chunk(pair, monkeypatch):
    policy = pair[0]
    prompt, completions = random_ids(5, 2), lengths_to_ids((4, 6, 5))
    whole = policy.logprobs(prompt, said(completions), 1.5)
    expected = gradients(policy, whole)
    monkeypatch.setattr(module, "CHUNK", 4)
    chunked = policy.logprobs(prompt, said(completions), 1.5)
    torch.testing.assert_close(torch.cat(chunked), torch.cat(whole), rtol=0, atol=1e-6)
    assert_close_gradients(gradients(policy, chunked), expected, 1e-5)


@pytest.mark.parametrize("temperature", [0.7, 1.0, 1.5])
def test_the_written_out_derivative_is_the_numerical_one(temperature):
    generator = torch.Generator().manual_seed(4)
    hidden = torch.randn(5, 6, generator=generator, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(9, 6, generator=generator, dtype=torch.float64)
    targets = torch.tensor([0, 8, 3, 3, 1])
    assert torch.autograd.gradcheck(lambda h: token_logprobs(h, weight, targets, temperature), (hidden,))


def test_half_precision_models_give_float32_values_of_their_own_logits():
    generator = torch.Generator().manual_seed(4)
    hidden = torch.randn(5, 64, generator=generator).bfloat16().requires_grad_()
    weight = torch.randn(261, 64, generator=generator).bfloat16()
    targets = torch.tensor([0, 8, 3, 3, 260])
    found = token_logprobs(hidden, weight, targets, 1.5)
    logits = (hidden @ weight.T).float() / 1.5
    expected = logits.log_softmax(-1)[range(5), targets]
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected)
    found.sum().backward()
    assert hidden.grad.dtype == torch.bfloat16


def test_scoring_gives_the_same_bits_with_gradients_and_without_however_short_the_row(pair):
    policy = pair[0]
    for n_prompt, lengths in ((1, (1,)), (3, (2, 4)), (40, (9, 3))):
        prompt, completions = random_ids(n_prompt, 8), lengths_to_ids(lengths)
        with_gradients = policy.logprobs(prompt, said(completions), 1.0)
        with torch.no_grad():
            without = policy.logprobs(prompt, said(completions), 1.0)
        assert torch.equal(torch.cat(with_gradients).detach(), torch.cat(without))


def test_without_an_adapter_the_values_are_the_base_models(pair):
    policy, plain = pair
    plain.model.set_attn_implementation("sdpa")
    prompt, completions = random_ids(11, 2), lengths_to_ids((4, 6))
    with policy.adapter_off(), torch.no_grad(), plain._peft.disable_adapter():
        for ours, theirs in zip(
            policy.logprobs(prompt, said(completions), 1.0),
            plain_logprobs(plain.model, prompt, completions, 1.0),
            strict=True,
        ):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


def test_an_adapter_that_was_stirred_moves_every_value(make_policy):
    policy = make_policy()
    prompt, completions = random_ids(11, 2), lengths_to_ids((4, 6))
    before = torch.cat(policy.logprobs(prompt, said(completions), 1.0))
    stir(policy, 0.5)
    after = torch.cat(policy.logprobs(prompt, said(completions), 1.0))
    assert policy.model.config._attn_implementation == IMPLEMENTATION
    assert ((before - after).abs() > 1e-4).all()


REASONED = Choice(supplied_ids=(65, 58), label_ids=(97, 98, 99))
DIRECT = Choice(supplied_ids=(58,), label_ids=(5, 4))
MIXED = [
    Completion([7, 8, 9, 257, 98], finish="stop", choice=REASONED),
    Completion([7, 8, 99], finish="length", choice=REASONED),
    Completion([257, 97], finish="stop", choice=REASONED),
    Completion([4], finish="stop", choice=Choice((58,), (5, 4, 3))),
    Completion([12, 257], finish="stop"),
]


def written_out(model, prompt, completion, temperature):
    """The log-probabilities of one completion by whole forward passes, one drawn token at a time."""
    found = []
    free = list(completion.token_ids[: completion.n_free])
    for place, token in enumerate(free):
        row = torch.tensor([[*prompt, *free[:place]]])
        logits = model(input_ids=row, use_cache=False).logits[0, -1]
        found.append((logits / temperature).log_softmax(-1)[token])
    if completion.choice:
        reasoning = free[:-1] if completion.finish == "stop" and free else free
        row = torch.tensor([[*prompt, *reasoning, *completion.choice.supplied_ids]])
        logits = model(input_ids=row, use_cache=False).logits[0, -1, list(completion.choice.label_ids)]
        place = completion.choice.label_ids.index(completion.token_ids[-1])
        found.append((logits / temperature).log_softmax(-1)[place])
    return torch.stack(found)


def test_choices_give_the_values_and_gradients_of_whole_forward_passes(pair):
    """One row holds different kinds of completions; each label is renormalized among its own labels."""
    policy, plain = pair
    plain.model.set_attn_implementation("sdpa")
    prompt = random_ids(11, 4)
    alike = MIXED
    found = policy.logprobs(prompt, alike, 1.5)
    expected = [written_out(plain.model, prompt, each, 1.5) for each in alike]
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    assert_close_gradients(gradients(policy, found), gradients(plain, expected), 1e-4)


def test_supplied_tokens_carry_no_loss_but_are_read(pair):
    policy, _ = pair
    prompt = random_ids(11, 4)
    (ours,) = policy.logprobs(prompt, MIXED[:1], 1.0)
    other = Completion(MIXED[0].token_ids, finish="stop", choice=Choice((66, 58), REASONED.label_ids))
    (theirs,) = policy.logprobs(prompt, [other], 1.0)
    assert len(ours) == len(MIXED[0].token_ids)
    torch.testing.assert_close(ours[:-1], theirs[:-1])
    assert abs(float(ours[-1] - theirs[-1])) > 1e-4


def test_the_labels_of_a_choice_share_all_of_the_probability(pair):
    policy, _ = pair
    prompt = random_ids(11, 4)
    group = [Completion([label], finish="stop", choice=DIRECT) for label in DIRECT.label_ids]
    total = torch.cat(policy.logprobs(prompt, group, 1.5)).exp().sum()
    assert float(total) == pytest.approx(1.0, abs=1e-6)
