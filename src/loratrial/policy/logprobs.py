"""Log-probabilities of completions, of exactly the distribution that each token was drawn from.

A group is scored as one flat row: the prompt once, then every completion (`attention.SharedPrefix`). No
logits are computed for prompt tokens, and the logits of completions exist only chunk by chunk: the gradient
of a token's log-probability with respect to its hidden state is formed in the same chunk and kept in place
of the logits. The output head is frozen, so nothing else is needed for the backward pass.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from loratrial.policy.attention import SharedPrefix
from loratrial.policy.completion import Completion

CHUNK = 256
"""Tokens whose logits exist at once."""


class _TokenLogprobs(torch.autograd.Function):
    """log softmax(h W^T / T)[target] for each token, with d/dh formed chunk by chunk in the forward pass:
    d log p_y / dh = (W_y - softmax(h W^T / T) W) / T."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, temperature: float) -> Tensor:
        needs_gradient = hidden.requires_grad
        exact = torch.float64 if hidden.dtype == torch.float64 else torch.float32
        result = torch.empty(len(targets), dtype=exact, device=hidden.device)
        slopes = torch.empty_like(hidden) if needs_gradient else None
        for start in range(0, len(targets), CHUNK):
            part = slice(start, start + CHUNK)
            logprobs = (hidden[part] @ weight.T).to(exact).div_(temperature)
            logprobs -= logprobs.logsumexp(dim=-1, keepdim=True)
            result[part] = logprobs.gather(-1, targets[part, None])[:, 0]
            if slopes is not None:
                expected = logprobs.exp_().to(weight.dtype) @ weight
                slopes[part] = (weight[targets[part]] - expected) / temperature
        if slopes is not None:
            ctx.save_for_backward(slopes)
        return result

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None, None, None]:
        (slopes,) = ctx.saved_tensors
        return upstream[0][:, None].to(slopes.dtype) * slopes, None, None, None


def token_logprobs(hidden: Tensor, weight: Tensor, targets: Tensor, temperature: float) -> Tensor:
    """Log-probability of each target, float32 [N]: `hidden` [N, D], frozen `weight` [V, D], `targets` [N].
    From float64 the result is float64."""
    result: Tensor = _TokenLogprobs.apply(hidden, weight, targets, temperature)  # type: ignore[no-untyped-call]
    return result


def choice_logprobs(
    hidden: Tensor, weight: Tensor, labels: Tensor, chosen: Tensor, temperature: float
) -> Tensor:
    """Log-probability of a label among the labels alone, float32 [N]: `hidden` [N, D], frozen `weight`
    [V, D], `labels` [N, K] token ids, `chosen` [N] places among them. From float64 the result is float64."""
    exact = torch.float64 if hidden.dtype == torch.float64 else torch.float32
    logits = (hidden[:, None] @ weight[labels].transpose(1, 2))[:, 0].to(exact) / temperature
    return logits.log_softmax(dim=-1).gather(-1, chosen[:, None])[:, 0]


def completion_logprobs(
    model: Any, prompt_ids: Sequence[int], completions: Sequence[Completion], temperature: float
) -> list[Tensor]:
    """Log-probabilities of the drawn tokens of each completion, one float32 tensor [R_i] each.

    `model` is a causal language model of transformers on the `loratrial` attention. The last prompt token
    predicts the first token of every completion; supplied tokens are read and have no log-probability; a
    label has its own among the labels. Gradients flow when they are enabled.
    """
    inputs = [completion.inputs for completion in completions]
    plan = SharedPrefix(len(prompt_ids), tuple(len(ids) for ids in inputs))
    device = model.device
    row = [*prompt_ids, *(token for ids in inputs for token in ids)]
    hidden = model.get_decoder()(
        input_ids=torch.tensor([row], device=device),
        position_ids=torch.tensor([plan.positions()], device=device),
        use_cache=False,
        plan=plan,
    ).last_hidden_state[0]
    starts = accumulate(plan.lengths, initial=plan.n_prompt)
    predictors = [
        [plan.n_prompt - 1 if place < 0 else start + place for place in completion.predictors]
        for start, completion in zip(starts, completions, strict=False)
    ]
    weight = model.get_output_embeddings().weight

    def tensor(values: Sequence[Any]) -> Tensor:
        return torch.tensor(values, dtype=torch.long, device=device)

    n_free = [completion.n_free for completion in completions]
    free = token_logprobs(
        hidden[tensor([place for places, n in zip(predictors, n_free, strict=True) for place in places[:n]])],
        weight,
        tensor([token for each, n in zip(completions, n_free, strict=True) for token in each.token_ids[:n]]),
        temperature,
    )
    parts = list(torch.split(free, n_free))
    choosing = [(i, each, each.choice) for i, each in enumerate(completions) if each.choice]
    if choosing:
        of_choices = choice_logprobs(
            hidden[tensor([predictors[i][-1] for i, _, _ in choosing])],
            weight,
            tensor([choice.label_ids for _, _, choice in choosing]),
            tensor([choice.label_ids.index(each.token_ids[-1]) for _, each, choice in choosing]),
            temperature,
        )
        for (i, _, _), value in zip(choosing, of_choices, strict=True):
            parts[i] = torch.cat([parts[i], value[None]])
    return parts
