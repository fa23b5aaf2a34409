"""Sampling a group: one prefill of the prompt, then all of its candidates token by token.

Each candidate draws from its own generator by the exponential race: the next token is the one with the
largest logit / T - log(noise), noise exponential (the Gumbel-max trick; Maddison et al. 2014, section 2).
A row's draw therefore does not depend on the rows beside it, and two policies that are given the same seeds
share their noise. The noise is drawn on the processor whatever the device, so that it is the same everywhere
(by numpy, whose exponentials take a fifth of the time of torch's).

Where a choice ends a completion, its supplied tokens are read one by one like any other, and the label is
drawn among the labels alone, with noise of its own: a candidate has the same however long it reasoned.

Left out on purpose: top-p and top-k. Log-probabilities are those of the distribution sampled from.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from loratrial.policy.attention import Decode, Prefill
from loratrial.policy.completion import Choice, Completion, Finish

_LABEL_NOISE = 1
"""Sets the noise of a label apart from that of free text."""


@dataclass(frozen=True)
class Request:
    """One group to sample: the prompt, one seed for each candidate, at most `max_tokens` of free text, and
    the choice that follows it, if any."""

    prompt_ids: Sequence[int]
    seeds: Sequence[int]
    max_tokens: int
    choice: Choice | None = None


class Race:
    """The noise of rows, each from its own generator."""

    def __init__(self, n_rows: int, n_vocabulary: int) -> None:
        self._noise = np.empty((n_rows, n_vocabulary), dtype=np.float32)

    def draw(
        self, generators: Sequence[np.random.Generator], logits: Tensor, temperature: float
    ) -> tuple[Tensor, Tensor]:
        """The winner of each row of `logits` [B, V], and its log-probability (float32), both [B]."""
        rows = self._noise[: len(generators), : logits.shape[-1]]
        for row, generator in zip(rows, generators, strict=True):
            row[:] = generator.standard_exponential(logits.shape[-1], dtype=np.float32)
        scores = logits.float() / temperature
        noise = torch.from_numpy(rows).to(scores.device)
        winners = (scores - noise.log()).argmax(dim=-1)
        chosen = scores.gather(-1, winners[:, None])[:, 0]
        return winners, chosen - scores.logsumexp(dim=-1)


@dataclass
class _Row:
    """One candidate on its way: what it has drawn, and what it has to read before it draws again."""

    group: int
    request: Request
    free: np.random.Generator
    label: np.random.Generator
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    to_read: list[int] = field(default_factory=list)
    finish: Finish = "stop"
    choosing: bool = False
    done: bool = False

    @classmethod
    def start(cls, group: int, request: Request, seed: int) -> "_Row":
        free, label = (np.random.Generator(np.random.SFC64(own)) for own in (seed, [seed, _LABEL_NOISE]))
        row = cls(group, request, free, label)
        if request.max_tokens < 1:
            row._end_free_text("stop")
        return row

    @property
    def completion(self) -> Completion:
        return Completion(self.token_ids, self.logprobs, self.finish, self.request.choice)

    def take(self, token: int, logprob: float, ends: Collection[int]) -> None:
        """What was drawn, and what follows from it."""
        self.token_ids.append(token)
        self.logprobs.append(logprob)
        if self.choosing:
            self.done = True
        elif token in ends:
            self._end_free_text("stop")
        else:
            self.to_read.append(token)
            if len(self.token_ids) == self.request.max_tokens:
                self._end_free_text("length")

    def _end_free_text(self, finish: Finish) -> None:
        self.finish = finish
        self.choosing = self.request.choice is not None
        self.done = not self.choosing
        if self.request.choice:
            self.to_read += self.request.choice.supplied_ids


@torch.no_grad()
def sample(
    model: Any, requests: Sequence[Request], temperature: float, eos_ids: Sequence[int]
) -> list[list[Completion]]:
    """Sample every candidate of every request side by side; one list of completions a request.

    `model` is a causal language model of transformers on the `loratrial` attention. A request with neither
    room for text nor a choice gets empty completions.
    """
    asked = [g for g, request in enumerate(requests) if request.max_tokens > 0 or request.choice]
    every = [_Row.start(g, requests[g], seed) for g in asked for seed in requests[g].seeds]
    if every:
        _sample(model, every, [requests[g] for g in asked], temperature, frozenset(eos_ids))
    said = iter(row.completion for row in every)
    return [
        [next(said) if g in asked else Completion() for _ in request.seeds]
        for g, request in enumerate(requests)
    ]


def _sample(
    model: Any, rows: list[_Row], requests: Sequence[Request], temperature: float, ends: Collection[int]
) -> None:
    """Carry the rows of all requests to their ends."""
    head = model.get_output_embeddings()
    prefills, logits = [], []
    for request in requests:
        prefill, hidden = _prefill(model, request.prompt_ids)
        prefills.append(prefill)
        logits.append(head(hidden).expand(len(request.seeds), -1))
    counts = [len(request.seeds) for request in requests]
    plan = Decode.allocate(prefills, counts, max(_most_inputs(request) for request in requests))
    step_logits = torch.cat(logits)
    race = Race(len(rows), step_logits.shape[-1])
    while True:
        _draw(rows, step_logits, temperature, race, ends)
        going = [place for place, row in enumerate(rows) if not row.done]
        if not going:
            return
        if len(going) < len(rows):
            plan.keep(going)
            rows = [rows[place] for place in going]
        inputs = torch.tensor([row.to_read.pop(0) for row in rows], device=step_logits.device)
        positions = [len(row.request.prompt_ids) + plan.step for row in rows]
        hidden = model.get_decoder()(
            input_ids=inputs[:, None],
            position_ids=torch.tensor(positions, device=inputs.device)[:, None],
            use_cache=False,
            plan=plan,
        ).last_hidden_state
        plan.step += 1
        step_logits = head(hidden[:, -1])


def _draw(
    rows: Sequence[_Row], logits: Tensor, temperature: float, race: Race, ends: Collection[int]
) -> None:
    """Let every row that has nothing left to read draw its next token, from its row of `logits` [B, V]."""
    ready = [(place, row) for place, row in enumerate(rows) if not row.to_read]
    free = [place for place, row in ready if not row.choosing]
    choosing = [
        (row, row.request.choice, place) for place, row in ready if row.choosing and row.request.choice
    ]
    if free:
        of_free = logits if len(free) == len(rows) else logits[torch.tensor(free, device=logits.device)]
        drawn = race.draw([rows[place].free for place in free], of_free, temperature)
        for place, token, logprob in zip(free, drawn[0].tolist(), drawn[1].tolist(), strict=True):
            rows[place].take(token, logprob, ends)
    for row, choice, place in choosing:
        labels = torch.tensor(choice.label_ids, device=logits.device)
        winner, chosen = race.draw([row.label], logits[place : place + 1, labels], temperature)
        row.take(choice.label_ids[int(winner)], float(chosen), ends)


def _most_inputs(request: Request) -> int:
    """The most tokens that a candidate reads after its prompt."""
    supplied = len(request.choice.supplied_ids) if request.choice else 0
    return max(0, request.max_tokens) + supplied


def _prefill(model: Any, prompt_ids: Sequence[int]) -> tuple[Prefill, Tensor]:
    """The prompt's keys and values, and the hidden state [1, D] that predicts the first completion token."""
    prefill = Prefill()
    hidden = model.get_decoder()(
        input_ids=torch.tensor([list(prompt_ids)], device=model.device), use_cache=False, plan=prefill
    ).last_hidden_state
    return prefill, hidden[:, -1]
