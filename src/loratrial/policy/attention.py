"""One attention implementation, registered with transformers, that does what its plan says.

A decoder of transformers passes unknown keywords through to its attention function. This package registers
one function, `loratrial`, and hands it a plan for the call: `Prefill` (a prompt, keys and values kept),
`Decode` (one new token a row, prompts stored once a group), `SharedPrefix` (a prompt followed by all of its
completions in one flat row, for training). So Llama, Qwen3 and other standard decoders work unchanged.

Masks are built from lengths, never from token ids. Shapes: B rows, H query heads, K key-value heads,
D head width, P prompt tokens, G candidates, S tokens of a flat row.

Left out on purpose: sliding windows, attention sinks and soft-capping, which the supported bases do not use.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

IMPLEMENTATION = "loratrial"


class Plan(Protocol):
    """How one forward pass attends."""

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """`query` [B, H, S, D], `key` and `value` [B, K, S, D] of this pass; returns [B, H, S, D]."""
        ...


def _attend(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    plan: Plan,
    **_: object,
) -> tuple[Tensor, None]:
    output = plan.attend(module.layer_idx, query, key, value, scaling)  # type: ignore[arg-type]
    return output.transpose(1, 2), None


AttentionInterface.register(IMPLEMENTATION, _attend)


@dataclass
class Prefill:
    """A prompt alone: causal attention; its keys and values [K, P, D] are kept layer by layer."""

    keys: list[Tensor] = field(default_factory=list)
    values: list[Tensor] = field(default_factory=list)

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        self.keys.append(key[0].contiguous())
        self.values.append(value[0].contiguous())
        return scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale, enable_gqa=True)


@dataclass
class Decode:
    """One new token for each row of several groups.

    A group's prompt is stored once, however many candidates read it. `own_keys[layer]` is
    [B, K, R, D], preallocated for R completion tokens; `step` of them are filled. Rows of a group stand
    together: `rows[g]` says how many are left of group g.
    """

    prompts: list[Prefill]
    rows: list[int]
    own_keys: list[Tensor]
    own_values: list[Tensor]
    step: int = 0

    @classmethod
    def allocate(cls, prompts: list[Prefill], rows: list[int], n_tokens: int) -> "Decode":
        """Room for `n_tokens` completion tokens a row."""
        n_rows = sum(rows)

        def room(like: Tensor) -> Tensor:
            return like.new_empty(n_rows, like.shape[0], n_tokens, like.shape[2])

        return cls(
            prompts,
            rows,
            [room(key) for key in prompts[0].keys],
            [room(value) for value in prompts[0].values],
        )

    def keep(self, rows: Sequence[int]) -> None:
        """Drop every row but `rows` (ascending), and every group that has none left."""
        bounds = [sum(self.rows[:g]) for g in range(len(self.rows) + 1)]
        left = [sum(bounds[g] <= row < bounds[g + 1] for row in rows) for g in range(len(self.rows))]
        self.prompts = [prompt for prompt, n in zip(self.prompts, left, strict=True) if n]
        self.rows = [n for n in left if n]
        index = torch.tensor(rows, device=self.own_keys[0].device)
        self.own_keys = [keys.index_select(0, index) for keys in self.own_keys]
        self.own_values = [values.index_select(0, index) for values in self.own_values]

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        n_rows, n_heads, _, width = query.shape
        n_kv = key.shape[1]
        self.own_keys[layer][:, :, self.step] = key[:, :, 0]
        self.own_values[layer][:, :, self.step] = value[:, :, 0]
        own_keys = self.own_keys[layer][:, :, : self.step + 1]
        own_values = self.own_values[layer][:, :, : self.step + 1]
        grouped = query.view(n_rows, n_kv, n_heads // n_kv, width) * scale
        own_scores = grouped @ own_keys.transpose(2, 3)  # [B, K, H/K, R]
        outputs = []
        first = 0
        for prompt, n in zip(self.prompts, self.rows, strict=True):
            outputs.append(
                _read_prompt_and_own(
                    grouped[first : first + n],
                    prompt.keys[layer],
                    prompt.values[layer],
                    own_scores[first : first + n],
                    own_values[first : first + n],
                )
            )
            first += n
        return torch.cat(outputs).view(n_rows, n_heads, 1, width)


def _read_prompt_and_own(
    query: Tensor, keys: Tensor, values: Tensor, own_scores: Tensor, own: Tensor
) -> Tensor:
    """One group: softmax over the shared prompt (keys [K, P, D]) and each row's own tokens together."""
    n, n_kv, per_kv, width = query.shape
    n_prompt = keys.shape[1]
    stacked = query.transpose(0, 1).reshape(n_kv, n * per_kv, width)  # every row's queries against one copy
    scores = (stacked @ keys.transpose(1, 2)).view(n_kv, n, per_kv, n_prompt).transpose(0, 1)
    weights = torch.cat([scores, own_scores], dim=-1).float().softmax(dim=-1).to(query.dtype)
    on_prompt = weights[..., :n_prompt].transpose(0, 1).reshape(n_kv, n * per_kv, n_prompt) @ values
    on_own = weights[..., n_prompt:] @ own
    return on_prompt.view(n_kv, n, per_kv, width).transpose(0, 1) + on_own


@dataclass
class SharedPrefix:
    """One flat row [prompt | completion 1 | ... | completion G]; completions do not see each other."""

    n_prompt: int
    lengths: tuple[int, ...]
    _mask: Tensor | None = None

    def positions(self) -> list[int]:
        """The position of each token of the flat row: completions restart after the prompt."""
        restarted = (range(self.n_prompt, self.n_prompt + length) for length in self.lengths)
        return [*range(self.n_prompt), *(position for span in restarted for position in span)]

    def mask(self, device: torch.device) -> Tensor:
        """Boolean [S, S]: True where a token (row) may look at another (column)."""
        owner = torch.repeat_interleave(
            torch.arange(len(self.lengths) + 1), torch.tensor([self.n_prompt, *self.lengths])
        ).to(device)
        order = torch.arange(len(owner), device=device)
        own_or_prompt = (owner[:, None] == owner[None, :]) | (owner[None, :] == 0)
        return own_or_prompt & (order[:, None] >= order[None, :])

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        if self._mask is None:
            self._mask = self.mask(query.device)
        return scaled_dot_product_attention(
            query, key, value, attn_mask=self._mask, scale=scale, enable_gqa=True
        )
