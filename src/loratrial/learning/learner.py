"""Learning from sampled groups: GRPO, and REINFORCE with a leave-one-out baseline.

One `learn` is one look at the groups that were sampled together. A tied group, or one with nothing valid,
teaches nothing: it gets no forward pass, no KL gradient, and no share in any denominator. On the first update
the ratio is to the policy itself (the groups are fresh), so no second pass for old log-probabilities is made.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from loratrial.learning.advantages import Advantage, advantages, is_tied
from loratrial.learning.group import Group
from loratrial.learning.measure import peak_memory_bytes
from loratrial.learning.objectives import grpo_token_losses, kl_tokens, reinforce_token_losses
from loratrial.learning.optimizer import Optimizer
from loratrial.policy.policy import Policy


@dataclass(frozen=True)
class Objective:
    """The settings of an update. `clip_ratio` None: REINFORCE; `kl_penalty` 0: no reference is computed."""

    advantage: Advantage
    temperature: float
    clip_ratio: float | None = None
    kl_penalty: float = 0.0
    updates_per_group: int = 1


@dataclass
class _Teaching:
    """A group that teaches, with what is computed for it once."""

    group: Group
    advantages: list[float]
    sampled: list[Tensor]
    reference: list[Tensor] | None = None
    old: list[Tensor] | None = None

    def divisor(self, objective: Objective) -> int:
        """What a sum over the group's tokens is divided by: tokens in GRPO, candidates in REINFORCE."""
        return len(self.group.completions) if objective.clip_ratio is None else _n_tokens(self.group)


class Learner:
    """Updates a policy from its own samples."""

    def __init__(
        self,
        policy: Policy,
        optimizer: Optimizer,
        objective: Objective,
        reference: dict[str, Tensor] | None,
        candidates_per_pass: int = 0,
    ) -> None:
        """`reference` is the adapter that training started from, None for a fresh one (the base itself);
        `candidates_per_pass` splits a group over passes to save memory (0: all at once)."""
        self.policy = policy
        self.optimizer = optimizer
        self.objective = objective
        self._reference = reference
        self._per_pass = candidates_per_pass

    def learn(self, groups: Sequence[Group]) -> list[dict[str, Any]]:
        """Update the policy from `groups` and return the learning record's lines, without times.

        A line is one update, or, with `update` None, groups from which there was nothing to learn.
        """
        described, teaching = self._advantages(groups)
        shared = {"groups": described, "tokens": sum(_n_tokens(group) for group in groups)}
        if not teaching:
            return [{"update": None, **shared}]
        if self.objective.kl_penalty:
            self._compute_reference(teaching)
        lines = []
        for _ in range(self.objective.updates_per_group):
            figures = self._update(teaching)
            lines.append({"update": self.policy.version, **shared, **figures})
            self.policy.version += 1
        return lines

    def _advantages(self, groups: Sequence[Group]) -> tuple[list[dict[str, Any]], list[_Teaching]]:
        described, teaching = [], []
        for group in groups:
            tied = is_tied(group.rewards)
            skipped = "no valid candidate" if not any(group.valid) else "tied" if tied else ""
            values = [0.0] * len(group.rewards)
            if not skipped:
                values = advantages(group.rewards, self.objective.advantage)
                sampled = [torch.tensor(completion.logprobs) for completion in group.completions]
                teaching.append(_Teaching(group, values, sampled))
            described.append(
                {
                    "group": group.ordinal,
                    "rewards": list(group.rewards),
                    "tied": tied,
                    "skipped": skipped,
                    "advantages": values,
                }
            )
        return described, teaching

    def _parts(self, group: Group) -> list[range]:
        n = len(group.completions)
        size = self._per_pass or n
        return [range(start, min(start + size, n)) for start in range(0, n, size)]

    def _logprobs(self, group: Group, part: range) -> list[Tensor]:
        ids = [group.completions[index].token_ids for index in part]
        return self.policy.logprobs(group.prompt_ids, ids, self.objective.temperature)

    @torch.no_grad()
    def _compute_reference(self, teaching: Sequence[_Teaching]) -> None:
        context = (
            self.policy.adapter_off() if self._reference is None else self.policy.with_state(self._reference)
        )
        with context:
            for each in teaching:
                each.reference = [
                    value for part in self._parts(each.group) for value in self._logprobs(each.group, part)
                ]

    def _update(self, teaching: Sequence[_Teaching]) -> dict[str, Any]:
        """One optimizer step: the mean over groups of each group's loss."""
        loss = kl = difference = 0.0
        for each in teaching:
            divisor = each.divisor(self.objective) * len(teaching)
            current: list[Tensor] = []
            for part in self._parts(each.group):
                with self.policy.training():
                    logprobs = self._logprobs(each.group, part)
                current += [value.detach() for value in logprobs]
                token_losses, token_kl = self._token_losses(each, part, logprobs)
                total = (token_losses.sum() + self.objective.kl_penalty * token_kl.sum()) / divisor
                total.backward()  # type: ignore[no-untyped-call]
                loss += float(total.detach())
                kl += float(token_kl.detach().sum()) / divisor
            if each.old is None:
                each.old = current
                pairs = zip(each.sampled, current, strict=True)
                gaps = [float((a - b.cpu()).abs().max()) for a, b in pairs if len(a)]
                difference = max(difference, *gaps)
        grad_norm, change = self.optimizer.step()
        return {
            "loss": loss,
            "kl": kl,
            "grad_norm": grad_norm,
            "adapter_change": change,
            "max_logprob_difference": difference,
            "peak_memory_bytes": peak_memory_bytes(),
        }

    def _token_losses(self, each: _Teaching, part: range, logprobs: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Losses and KL terms of the completion tokens of `part`, both [N]."""
        flat = torch.cat(logprobs)
        weights = torch.cat(
            [torch.full_like(value, each.advantages[i]) for i, value in zip(part, logprobs, strict=True)]
        )
        if self.objective.clip_ratio is None:
            return reinforce_token_losses(flat, weights), torch.zeros_like(flat)
        old = flat.detach() if each.old is None else torch.cat([each.old[i] for i in part])
        losses = grpo_token_losses(flat, old, weights, self.objective.clip_ratio)
        if each.reference is None:
            return losses, torch.zeros_like(flat)
        return losses, kl_tokens(flat, torch.cat([each.reference[i] for i in part]))


def _n_tokens(group: Group) -> int:
    return sum(len(completion.token_ids) for completion in group.completions)
