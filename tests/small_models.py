"""Policies on the random models, token ids for them, and what plain transformers makes of both."""

import math
from collections.abc import Sequence

import torch

from loratrial.policy.completion import Completion
from loratrial.policy.models import load_base
from loratrial.policy.policy import Policy

ALL_TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")

torch.set_num_threads(1)  # sums are split over threads, so exact comparisons need a fixed number of them


def make_policy(name: str = "tiny", *, strength: float = 0.1, seed: int = 3, **options) -> Policy:
    """A policy on a random model whose adapter does something: B is drawn as well."""
    policy = Policy(load_base(name), **{"rank": 4, "alpha": 8, "targets": ALL_TARGETS, **options})
    policy.reset(seed)
    stir(policy, strength, seed)
    return policy


def stir(policy: Policy, strength: float, seed: int = 3) -> None:
    """Draw the adapter's B matrices, which a fresh adapter has at zero."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in policy.parameters.items():
            if "lora_B" in name:
                value.copy_(strength * torch.randn(value.shape, generator=generator) / math.sqrt(len(value)))


def random_ids(n: int, seed: int) -> list[int]:
    """`n` byte ids."""
    return torch.randint(0, 256, (n,), generator=torch.Generator().manual_seed(seed)).tolist()


def lengths_to_ids(lengths: Sequence[int], seed: int = 5) -> list[list[int]]:
    """A completion of bytes of each length."""
    return [random_ids(length, seed + index) for index, length in enumerate(lengths)]


def said(completions: Sequence[Sequence[int]]) -> list[Completion]:
    """Completions of plain text, by their tokens."""
    return [Completion(ids) for ids in completions]


def plain_logprobs(model, prompt_ids, completions, temperature):
    """What `completion_logprobs` means, by the model's own forward pass over each row alone."""
    result = []
    for ids in completions:
        row = torch.tensor([[*prompt_ids, *ids]])
        logits = model(input_ids=row, use_cache=False).logits[0]
        logprobs = (logits / temperature).log_softmax(dim=-1)
        places = range(len(prompt_ids) - 1, len(prompt_ids) - 1 + len(ids))
        result.append(
            torch.stack([logprobs[place, token] for place, token in zip(places, ids, strict=True)])
            if ids
            else logprobs.new_empty(0)
        )
    return result


def gradients(policy, logprobs):
    """The gradients of a sum that weighs every token differently."""
    flat = torch.cat(logprobs)
    (flat * torch.linspace(-1, 2, max(1, len(flat)), dtype=flat.dtype)[: len(flat)]).sum().backward()
    found = {name: value.grad for name, value in policy.parameters.items() if value.grad is not None}
    for value in policy.parameters.values():
        value.grad = None
    return found


def assert_close_gradients(ours, theirs, tolerance):
    """Equal names, and values equal relative to the largest of each tensor."""
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        scale = float(value.abs().max())
        assert scale > 0
        torch.testing.assert_close(ours[name], value, rtol=tolerance, atol=scale * tolerance)


class Recorder:
    """An optimizer that keeps the gradients that it is given and changes nothing."""

    def __init__(self, policy):
        self.parameters, self.gradients, self.rates = policy.parameters, {}, []

    def step(self, learning_rate=None):
        self.rates.append(learning_rate)
        for name, value in self.parameters.items():
            self.gradients[name], value.grad = value.grad, None
        return 1.5, 0.0
