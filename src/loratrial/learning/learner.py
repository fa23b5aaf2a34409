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

from loratrial.learning.advantages import Advantage, advantages, is_tied, price_changed
from loratrial.learning.group import Group
from loratrial.learning.measure import peak_memory_bytes
from loratrial.learning.objectives import grpo_token_losses, kl_tokens, reinforce_token_losses
from loratrial.learning.optimizer import Optimizer
from loratrial.learning.token_price import priced_reward
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

    def learn(self, groups: Sequence[Group], price: float | None = None) -> list[dict[str, Any]]:
        """Update the policy from `groups` and return the learning record's lines, without times.

        A line is one update, or, with `update` None, groups from which there was nothing to learn. With a
        `price`, each reasoning token costs so much of the reward that advantages are made of.
        """
        described, teaching = self._advantages(groups, price)
        shared = {"groups": described, "tokens": sum(_n_tokens(group) for group in groups)}
        if price is not None:
            shared["price"] = price
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

    def _advantages(
        self, groups: Sequence[Group], price: float | None
    ) -> tuple[list[dict[str, Any]], list[_Teaching]]:
        described, teaching = [], []
        for group in groups:
            priced = [
                priced_reward(reward, price or 0.0, completion.n_reasoning)
                for reward, completion in zip(group.rewards, group.completions, strict=True)
            ]
            tied = is_tied(priced)
            skipped = "no valid candidate" if not any(group.valid) else "tied" if tied else ""
            values = [0.0] * len(priced) if skipped else advantages(priced, self.objective.advantage)
            said: dict[str, Any] = {"group": group.ordinal, "rewards": list(group.rewards)}
            if price is not None:
                free = [0.0] * len(priced)
                if not skipped and not is_tied(group.rewards):
                    free = advantages(group.rewards, self.objective.advantage)
                said |= {"priced_rewards": priced, "price_changed": price_changed(values, free)}
            described.append({**said, "tied": tied, "skipped": skipped, "advantages": values})
            if not skipped:
                sampled = [torch.tensor(completion.logprobs) for completion in group.completions]
                teaching.append(_Teaching(group, values, sampled))
        return described, teaching

    def _parts(self, group: Group) -> list[list[int]]:
        """The candidates of each pass: they share a prompt, and are at most `candidates_per_pass`."""
        by_prompt: dict[tuple[int, ...], list[int]] = {}
        for index, prompt in enumerate(group.prompts):
            by_prompt.setdefault(tuple(prompt), []).append(index)
        size = self._per_pass or len(group.completions)
        return [own[at : at + size] for own in by_prompt.values() for at in range(0, len(own), size)]

    def _logprobs(self, group: Group, part: Sequence[int]) -> list[Tensor]:
        completions = [group.completions[index] for index in part]
        return self.policy.logprobs(group.prompts[part[0]], completions, self.objective.temperature)

    def _all_logprobs(self, group: Group) -> list[Tensor]:
        found = {
            index: value
            for part in self._parts(group)
            for index, value in zip(part, self._logprobs(group, part), strict=True)
        }
        return [found[index] for index in range(len(group.completions))]

    @torch.no_grad()
    def _compute_reference(self, teaching: Sequence[_Teaching]) -> None:
        context = (
            self.policy.adapter_off() if self._reference is None else self.policy.with_state(self._reference)
        )
        with context:
            for each in teaching:
                each.reference = self._all_logprobs(each.group)

    def _update(self, teaching: Sequence[_Teaching]) -> dict[str, Any]:
        """One optimizer step: the mean over groups of each group's loss."""
        loss = kl = difference = 0.0
        for each in teaching:
            divisor = each.divisor(self.objective) * len(teaching)
            current: dict[int, Tensor] = {}
            for part in self._parts(each.group):
                with self.policy.training():
                    logprobs = self._logprobs(each.group, part)
                current |= {index: value.detach() for index, value in zip(part, logprobs, strict=True)}
                token_losses, token_kl = self._token_losses(each, part, logprobs)
                total = (token_losses.sum() + self.objective.kl_penalty * token_kl.sum()) / divisor
                total.backward()  # type: ignore[no-untyped-call]
                loss += float(total.detach())
                kl += float(token_kl.detach().sum()) / divisor
            if each.old is None:
                each.old = [current[index] for index in range(len(current))]
                pairs = zip(each.sampled, each.old, strict=True)
                gaps = [float((a - b.cpu()).abs().max()) for a, b in pairs if len(a)]
                difference = max(difference, *gaps)
        grad_norm, change = self.optimizer.step()
        return {
            "loss": loss,
            "kl": kl,
            "grad_norm": grad_norm,
            "adapter_change": change,
            "adapter_sha256": self.policy.fingerprint(),
            "max_logprob_difference": difference,
            "peak_memory_bytes": peak_memory_bytes(),
        }

    def _token_losses(
        self, each: _Teaching, part: Sequence[int], logprobs: list[Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Losses and KL terms of the drawn tokens of `part`, both [N]."""
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
