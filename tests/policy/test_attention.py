"""The three plans of attention against their definitions: who looks at whom, written out token by token."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from loratrial.policy.attention import Decode, Prefill, SharedPrefix

LENGTHS = st.lists(st.integers(0, 5), min_size=1, max_size=6).map(tuple)
SCALE = 0.3


def _random(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _attention(query, keys, values):
    """One query vector [D] over keys and values [N, D], by the formula."""
    weights = torch.tensor([math.exp(SCALE * float(query @ key)) for key in keys], dtype=query.dtype)
    return (weights / weights.sum()) @ values


def _owner(n_prompt, lengths):
    """Whose each token of the flat row is: None for the prompt, else the completion's number."""
    return [None] * n_prompt + [number for number, n in enumerate(lengths) for _ in range(n)]


@settings(deadline=None, derandomize=True, max_examples=50)
@given(n_prompt=st.integers(1, 6), lengths=LENGTHS)
def test_a_token_looks_at_the_prompt_and_at_its_own_past_only(n_prompt, lengths):
    owner = _owner(n_prompt, lengths)
    expected = [
        [column <= row and owner[column] in (None, owner[row]) for column in range(len(owner))]
        for row in range(len(owner))
    ]
    assert SharedPrefix(n_prompt, lengths).mask(torch.device("cpu")).tolist() == expected


@settings(deadline=None, derandomize=True, max_examples=50)
@given(n_prompt=st.integers(1, 6), lengths=LENGTHS)
def test_every_completion_takes_the_positions_that_it_would_have_alone(n_prompt, lengths):
    positions = SharedPrefix(n_prompt, lengths).positions()
    start = n_prompt
    for length in lengths:
        alone = SharedPrefix(n_prompt, (length,)).positions()
        assert (
            positions[:n_prompt] + positions[start : start + length] == alone == [*range(n_prompt + length)]
        )
        start += length


@pytest.mark.parametrize("n_heads", [2, 6])
def test_shared_prefix_attends_by_the_formula_also_with_fewer_key_heads(n_heads):
    n_prompt, lengths, n_kv = 3, (2, 0, 3), 2
    n = n_prompt + sum(lengths)
    query, key, value = (
        _random(1, n_heads, n, 4),
        _random(1, n_kv, n, 4, seed=1),
        _random(1, n_kv, n, 4, seed=2),
    )
    plan = SharedPrefix(n_prompt, lengths)
    found = plan.attend(0, query, key, value, SCALE)
    mask = plan.mask(query.device)
    for head in range(n_heads):
        shared = head // (n_heads // n_kv)
        for row in range(n):
            seen = mask[row]
            expected = _attention(query[0, head, row], key[0, shared, seen], value[0, shared, seen])
            torch.testing.assert_close(found[0, head, row], expected)


def test_a_prefill_is_causal_and_keeps_keys_and_values_layer_by_layer():
    plan = Prefill()
    query, key, value = _random(1, 4, 5, 3), _random(1, 2, 5, 3, seed=1), _random(1, 2, 5, 3, seed=2)
    for layer in range(2):
        found = plan.attend(layer, query + layer, key + layer, value - layer, SCALE)
        for row in range(5):
            expected = _attention(
                query[0, 3, row] + layer, key[0, 1, : row + 1] + layer, value[0, 1, : row + 1] - layer
            )
            torch.testing.assert_close(found[0, 3, row], expected)
    assert torch.equal(plan.keys[1], key[0] + 1)
    assert torch.equal(plan.values[1], value[0] - 1)


def _prompt(n_tokens, seed):
    return Prefill([_random(2, n_tokens, 3, seed=seed)], [_random(2, n_tokens, 3, seed=seed + 1)])


def _decode_step(plan, seed, n_rows):
    """One step of random tokens; returns query, key and value, each row's own, and the output."""
    query = _random(n_rows, 4, 1, 3, seed=seed).float()
    key, value = (
        _random(n_rows, 2, 1, 3, seed=seed + 1).float(),
        _random(n_rows, 2, 1, 3, seed=seed + 2).float(),
    )
    found = plan.attend(0, query, key, value, SCALE)
    plan.step += 1
    return query, key, value, found


def test_decoding_rows_read_their_groups_prompt_and_their_own_tokens_also_after_rows_are_dropped():
    prompts = [_prompt(4, 10), _prompt(1, 20), _prompt(7, 30)]
    for prompt in prompts:
        prompt.keys, prompt.values = [prompt.keys[0].float()], [prompt.values[0].float()]
    group_of = [0, 0, 1, 2, 2, 2]
    plan = Decode.allocate(list(prompts), [2, 1, 3], 3)
    keys, values = [[] for _ in group_of], [[] for _ in group_of]
    rows = list(range(6))
    for step, left in enumerate([[0, 1, 2, 3, 4, 5], [1, 3, 5], [3, 5]]):
        if left != rows:
            plan.keep([rows.index(row) for row in left])
            rows = left
        query, key, value, found = _decode_step(plan, 100 * step, len(rows))
        for at, row in enumerate(rows):
            keys[row].append(key[at])
            values[row].append(value[at])
            prompt = prompts[group_of[row]]
            all_keys = torch.cat([prompt.keys[0], *keys[row]], dim=1)
            all_values = torch.cat([prompt.values[0], *values[row]], dim=1)
            for head in range(4):
                expected = _attention(query[at, head, 0], all_keys[head // 2], all_values[head // 2])
                torch.testing.assert_close(found[at, head, 0], expected, atol=1e-5, rtol=1e-5)
    assert plan.rows == [2]
    assert plan.prompts == [prompts[2]]
