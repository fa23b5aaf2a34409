"""Supervised warm start: cross-entropy on gold outputs. Prompt tokens and supplied ones carry no loss.

One update takes the examples of one batch; its loss is the mean over their completion tokens.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from loratrial.learning.optimizer import Optimizer
from loratrial.policy.completion import Completion
from loratrial.policy.policy import Policy
from loratrial.seeds import derive_seed


@dataclass(frozen=True)
class Example:
    """One prompt and the completion to learn, its end token included."""

    prompt_ids: Sequence[int]
    completion: Completion


def batches(n_examples: int, batch_size: int, passes: int, seed: int) -> list[list[int]]:
    """The examples of every update: each pass takes all of them once, in an order of its own."""
    result = []
    for number in range(passes):
        order = list(range(n_examples))
        random.Random(derive_seed("order", seed, number)).shuffle(order)
        result += [order[start : start + batch_size] for start in range(0, n_examples, batch_size)]
    return result


def learning_rate_at(update: int, n_updates: int, peak: float, warmup: int, schedule: str) -> float:
    """The learning rate of update `update` (from 0): rising in a line over `warmup`, then constant, or
    `linear`: falling in a line that would reach 0 one update after the last."""
    if update < warmup:
        return peak * (update + 1) / (warmup + 1)
    if schedule == "constant":
        return peak
    return peak * (n_updates - update) / max(1, n_updates - warmup)


def supervised_update(
    policy: Policy, optimizer: Optimizer, batch: Sequence[Example], learning_rate: float, seed: int
) -> dict[str, float]:
    """One update; returns its loss (nats a token), gradient norm and adapter change."""
    n_tokens = sum(len(example.completion.token_ids) for example in batch)
    loss = 0.0
    torch.manual_seed(seed)  # dropout
    with policy.training():
        for example in batch:
            (logprobs,) = policy.logprobs(example.prompt_ids, [example.completion], temperature=1.0)
            part = -logprobs.sum() / n_tokens
            part.backward()  # type: ignore[no-untyped-call]
            loss += float(part.detach())
    grad_norm, change = optimizer.step(learning_rate)
    policy.version += 1
    return {"loss": loss, "grad_norm": grad_norm, "adapter_change": change, "tokens": n_tokens}
