"""Log-probabilities of completions, of exactly the distribution that they were sampled from.

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


def completion_logprobs(
    model: Any, prompt_ids: Sequence[int], completions: Sequence[Sequence[int]], temperature: float
) -> list[Tensor]:
    """Per-token log-probabilities of each completion after the prompt, one float32 tensor [R_i] each.

    `model` is a causal language model of transformers on the `loratrial` attention. The last prompt token
    predicts the first token of every completion. Gradients flow when they are enabled.
    """
    plan = SharedPrefix(len(prompt_ids), tuple(len(ids) for ids in completions))
    device = model.device
    row = [*prompt_ids, *(token for ids in completions for token in ids)]
    hidden = model.get_decoder()(
        input_ids=torch.tensor([row], device=device),
        position_ids=torch.tensor([plan.positions()], device=device),
        use_cache=False,
        plan=plan,
    ).last_hidden_state[0]
    starts = accumulate(plan.lengths, initial=plan.n_prompt)
    predictors = [
        index
        for start, length in zip(starts, plan.lengths, strict=False)
        for index in ([plan.n_prompt - 1, *range(start, start + length - 1)] if length else [])
    ]
    logprobs = token_logprobs(
        hidden[torch.tensor(predictors, dtype=torch.long, device=device)],
        model.get_output_embeddings().weight,
        torch.tensor(row[plan.n_prompt :], dtype=torch.long, device=device),
        temperature,
    )
    return list(torch.split(logprobs, list(plan.lengths)))
