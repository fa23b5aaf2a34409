"""Sampling a group: one prefill of the prompt, then all of its candidates token by token.

Each candidate draws from its own generator by the exponential race: the next token is the one with the
largest logit / T - log(noise), noise exponential (the Gumbel-max trick; Maddison et al. 2014, section 2).
A row's draw therefore does not depend on the rows beside it, and two policies that are given the same seeds
share their noise. The noise is drawn on the processor whatever the device, so that it is the same everywhere
(by numpy, whose exponentials take a fifth of the time of torch's).

Left out on purpose: top-p and top-k. Log-probabilities are those of the distribution sampled from.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from loratrial.policy.attention import Decode, Prefill


@dataclass(frozen=True)
class Request:
    """One group to sample: the prompt, and one seed for each candidate."""

    prompt_ids: Sequence[int]
    seeds: Sequence[int]
    max_tokens: int


@dataclass
class Completion:
    """What one candidate said. `stop`: it ended itself, its end token included; `length`: it was capped."""

    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish: Literal["stop", "length"] = "length"


class Race:
    """The noise of every row, each from its own generator."""

    def __init__(self, seeds: Sequence[int], n_vocabulary: int) -> None:
        self._generators = [np.random.Generator(np.random.SFC64(seed)) for seed in seeds]
        self._noise = np.empty((len(seeds), n_vocabulary), dtype=np.float32)

    def keep(self, rows: Sequence[int]) -> None:
        self._generators = [self._generators[row] for row in rows]
        self._noise = self._noise[: len(rows)]

    def draw(self, logits: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
        """The winner of each row of `logits` [B, V], and its log-probability (float32), both [B]."""
        for row, generator in zip(self._noise, self._generators, strict=True):
            generator.standard_exponential(dtype=np.float32, out=row)
        scores = logits.float() / temperature
        noise = torch.from_numpy(self._noise).to(scores.device)
        winners = (scores - noise.log()).argmax(dim=-1)
        chosen = scores.gather(-1, winners[:, None])[:, 0]
        return winners, chosen - scores.logsumexp(dim=-1)


@torch.no_grad()
def sample(
    model: Any, requests: Sequence[Request], temperature: float, eos_ids: Sequence[int]
) -> list[list[Completion]]:
    """Sample every candidate of every request side by side; one list of completions a request.

    `model` is a causal language model of transformers on the `loratrial` attention. A request with
    `max_tokens` below 1 gets empty completions.
    """
    results = [[Completion() for _ in request.seeds] for request in requests]
    open_requests = [g for g, request in enumerate(requests) if request.max_tokens > 0]
    if not open_requests:
        return results
    head = model.get_output_embeddings()
    prefills, logits = [], []
    for g in open_requests:
        prefill, hidden = _prefill(model, requests[g].prompt_ids)
        prefills.append(prefill)
        logits.append(head(hidden).expand(len(requests[g].seeds), -1))
    rows = [(g, candidate) for g in open_requests for candidate in range(len(requests[g].seeds))]
    race = Race([requests[g].seeds[candidate] for g, candidate in rows], logits[0].shape[-1])
    longest = max(requests[g].max_tokens for g in open_requests)
    plan = Decode.allocate(prefills, [len(requests[g].seeds) for g in open_requests], longest)
    step_logits = torch.cat(logits)
    ends = frozenset(eos_ids)
    while True:
        winners, logprobs = race.draw(step_logits, temperature)
        going = []
        for row, ((g, candidate), token, logprob) in enumerate(
            zip(rows, winners.tolist(), logprobs.tolist(), strict=True)
        ):
            completion = results[g][candidate]
            completion.token_ids.append(token)
            completion.logprobs.append(logprob)
            if token in ends:
                completion.finish = "stop"
            elif len(completion.token_ids) < requests[g].max_tokens:
                going.append(row)
        if not going:
            return results
        if len(going) < len(rows):
            plan.keep(going)
            race.keep(going)
            rows = [rows[row] for row in going]
            winners = winners[torch.tensor(going, device=winners.device)]
        positions = [len(requests[g].prompt_ids) + plan.step for g, _ in rows]
        hidden = model.get_decoder()(
            input_ids=winners[:, None],
            position_ids=torch.tensor(positions, device=winners.device)[:, None],
            use_cache=False,
            plan=plan,
        ).last_hidden_state
        plan.step += 1
        step_logits = head(hidden[:, -1])


def _prefill(model: Any, prompt_ids: Sequence[int]) -> tuple[Prefill, Tensor]:
    """The prompt's keys and values, and the hidden state [1, D] that predicts the first completion token."""
    prefill = Prefill()
    hidden = model.get_decoder()(
        input_ids=torch.tensor([list(prompt_ids)], device=model.device), use_cache=False, plan=prefill
    ).last_hidden_state
    return prefill, hidden[:, -1]
