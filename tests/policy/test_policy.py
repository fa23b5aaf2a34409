"""The policy: what its adapter does when it is fresh, set, saved, loaded, trained and off."""

import json
import warnings
from types import SimpleNamespace

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from small_models import (
    ALL_TARGETS,
    assert_close_gradients,
    gradients,
    lengths_to_ids,
    plain_logprobs,
    random_ids,
    said,
    stir,
)

from loratrial.errors import ModelError
from loratrial.policy.models import load_base
from loratrial.policy.policy import ADAPTER_FILE, CONFIG_FILE, Policy

PROMPT, COMPLETIONS = random_ids(40, 1), lengths_to_ids((5, 3))


def score(policy):
    """All log-probabilities of two completions, [8]."""
    with torch.no_grad():
        return torch.cat(policy.logprobs(PROMPT, said(COMPLETIONS), 1.3))


def base_score(name="tiny"):
    model = load_base(name).model
    with torch.no_grad():
        return torch.cat(plain_logprobs(model, PROMPT, COMPLETIONS, 1.3))


@pytest.mark.parametrize("name", ["tiny", "tiny-llama"])
def test_a_fresh_adapter_is_exactly_the_base(make_policy, name):
    policy = make_policy(name)
    stirred = score(policy)
    policy.reset(1)
    fresh = score(policy)
    with policy.adapter_off():
        assert torch.equal(score(policy), fresh)
    torch.testing.assert_close(fresh, base_score(name), rtol=0, atol=1e-5)
    assert not torch.allclose(stirred, fresh, atol=1e-3)


def test_only_the_adapter_can_be_trained_and_it_is_float32_on_a_bfloat16_base():
    policy = Policy(load_base("tiny", dtype="bfloat16"), rank=4, alpha=8, targets=ALL_TARGETS)
    assert len(policy.parameters) == 2 * 7 * 2
    assert {value.dtype for value in policy.parameters.values()} == {torch.float32}
    assert list(policy.parameters) == sorted(policy.parameters)
    frozen = [value for value in policy.model.parameters() if not value.requires_grad]
    assert {value.dtype for value in frozen} == {torch.bfloat16}
    assert score(policy).isfinite().all()


def test_the_seed_of_a_fresh_adapter_decides_it_whatever_stood_there(make_policy):
    first, second = make_policy(seed=1), make_policy(seed=2)
    first.version = 7
    first.reset(5)
    second.reset(5)
    assert first.version == 0
    assert all(torch.equal(value, second.state()[name]) for name, value in first.state().items())
    second.reset(6)
    names = [name for name in first.state() if "lora_A" in name]
    assert names
    assert not any(torch.equal(first.state()[name], second.state()[name]) for name in names)
    for name in names:
        value = first.state()[name]
        assert value.abs().max() <= value.shape[1] ** -0.5
        assert value.std() == pytest.approx(value.shape[1] ** -0.5 / 3**0.5, rel=0.2)


def test_a_state_is_a_copy_and_setting_it_brings_the_policy_back(make_policy):
    policy = make_policy()
    state, before = policy.state(), score(policy)
    stir(policy, 0.5, seed=9)
    assert not torch.equal(score(policy), before)
    policy.set_state(state)
    assert torch.equal(score(policy), before)


def test_a_state_that_does_not_fit_is_refused_in_one_line(make_policy):
    policy, larger = make_policy(), make_policy(rank=8)
    narrower = make_policy(targets=["q_proj"])
    with pytest.raises(ModelError, match=r"does not fit: \S+ is \(8, 64\)"):
        policy.set_state(larger.state())
    with pytest.raises(ModelError, match="is only on one side"):
        policy.set_state(narrower.state())


def test_saving_and_loading_changes_nothing_at_all(make_policy, tmp_path):
    policy = make_policy()
    before = score(policy)
    digest = policy.save(tmp_path / "a")
    other = make_policy(seed=8)
    assert other.load(tmp_path / "a") == digest
    assert (score(other) - before).abs().max() == 0.0
    assert other.save(tmp_path / "b") == digest
    for name in (ADAPTER_FILE, CONFIG_FILE):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.parametrize("name", ["tiny", "tiny-llama"])
def test_plain_peft_loads_what_is_saved_and_agrees_in_values_and_gradients(make_policy, name, tmp_path):
    policy = make_policy(name)
    policy.save(tmp_path)
    base = load_base(name).model
    plain = PeftModel.from_pretrained(base, str(tmp_path), is_trainable=True)
    expected = plain_logprobs(plain, PROMPT, COMPLETIONS, 1.3)
    found = policy.logprobs(PROMPT, said(COMPLETIONS), 1.3)
    torch.testing.assert_close(torch.cat(found), torch.cat(expected), rtol=0, atol=1e-5)
    ours = gradients(policy, found)

    trained = {name: value for name, value in plain.named_parameters() if value.requires_grad}
    theirs = gradients(SimpleNamespace(parameters=trained), expected)
    names = {name: name.removeprefix("base_model.model.") for name in theirs}
    assert_close_gradients(ours, {names[name]: value for name, value in theirs.items()}, 1e-5)


def test_the_saved_configuration_names_the_base_and_lists_targets_in_order(make_policy, tmp_path):
    policy = make_policy(rank=3, alpha=5)
    policy.save(tmp_path)
    saved = json.loads((tmp_path / CONFIG_FILE).read_text())
    assert saved["base_model_name_or_path"] == "tiny"
    assert saved["target_modules"] == sorted(ALL_TARGETS)
    assert (saved["r"], saved["lora_alpha"], saved["inference_mode"], saved["bias"]) == (3, 5, True, "none")
    assert len(load_file(tmp_path / ADAPTER_FILE)) == 28


def test_files_that_are_no_adapter_are_refused_in_one_line(make_policy, tmp_path):
    policy = make_policy()
    before = score(policy)
    with pytest.raises(ModelError, match="cannot be read as an adapter"):
        policy.load(tmp_path)
    policy.save(tmp_path)
    whole = (tmp_path / ADAPTER_FILE).read_bytes()
    (tmp_path / ADAPTER_FILE).write_bytes(whole[:-40])
    with pytest.raises(ModelError, match="cannot be read as an adapter"):
        policy.load(tmp_path)
    save_file({"a": torch.zeros(2)}, tmp_path / ADAPTER_FILE)
    with pytest.raises(ModelError, match="does not fit"):
        policy.load(tmp_path)
    assert torch.equal(score(policy), before)


def test_off_lasts_as_long_as_its_context_also_when_that_fails(make_policy):
    policy = make_policy()
    on = score(policy)
    with policy.adapter_off():
        assert not torch.equal(score(policy), on)
    assert torch.equal(score(policy), on)
    with pytest.raises(IndexError), policy.adapter_off():
        policy.logprobs([999], said([[1]]), 1.0)
    assert torch.equal(score(policy), on)


def test_turned_off_it_stays_the_base_until_an_adapter_is_put_in(make_policy, tmp_path):
    policy = make_policy()
    policy.save(tmp_path)
    state, on = policy.state(), score(policy)
    with policy.adapter_off():
        off = score(policy)
    for put_in in (lambda: policy.set_state(state), lambda: policy.load(tmp_path), lambda: policy.reset(3)):
        policy.version = 4
        policy.turn_off()
        assert policy.version == 0
        assert torch.equal(score(policy), off)
        with policy.adapter_off():
            assert torch.equal(score(policy), off)
        assert torch.equal(score(policy), off)
        put_in()
        stir(policy, 0.1)
        assert torch.equal(score(policy), on)


def test_with_another_state_it_is_another_policy_and_then_itself_again(make_policy):
    policy, other = make_policy(), make_policy(seed=8)
    policy.version = 4
    mine, theirs = score(policy), score(other)
    with policy.with_state(other.state()):
        assert torch.equal(score(policy), theirs)
    assert torch.equal(score(policy), mine)
    assert policy.version == 4


def test_dropout_is_live_in_training_and_nowhere_else(make_policy):
    policy = make_policy(dropout=0.5)
    assert torch.equal(score(policy), score(policy))
    with policy.training():
        assert not torch.equal(score(policy), score(policy))
    assert torch.equal(score(policy), score(policy))


def test_gradient_checkpointing_computes_layers_again_and_gives_the_same_gradients(make_policy, monkeypatch):
    from loratrial.policy.attention import SharedPrefix

    passes = []
    attend = SharedPrefix.attend

    def counted(self, layer, *tensors):
        passes.append(layer)
        return attend(self, layer, *tensors)

    monkeypatch.setattr(SharedPrefix, "attend", counted)
    found = []
    for checkpointing in (False, True):
        policy = make_policy(gradient_checkpointing=checkpointing)
        with policy.training():
            logprobs = policy.logprobs(PROMPT, said(COMPLETIONS), 1.5)
        found.append((torch.cat(logprobs).detach(), gradients(policy, logprobs)))
    assert passes == [0, 1, 0, 1, 1, 0]
    assert torch.equal(found[0][0], found[1][0])
    for name, value in found[0][1].items():
        assert torch.equal(found[1][1][name], value)


def test_layers_that_the_base_does_not_have_are_refused_in_one_line():
    with pytest.raises(ModelError, match=r"adapter\.targets: the base tiny has no such layers"):
        Policy(load_base("tiny"), rank=4, alpha=8, targets=["query"])


def test_text_goes_in_as_a_chat_prompt_and_comes_out_without_its_end(make_policy):
    policy = make_policy()
    ids = policy.prompt_ids([{"role": "user", "content": "hi"}])
    assert policy.tokenizer.decode(ids).endswith(
        "hi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
    )
    assert policy.decode([104, 105, 257]) == "hi"
    assert policy.decode([104, 105, 258]) == "hi"


def test_nothing_that_it_does_warns_or_asks_the_hub(tmp_path, monkeypatch):
    def refuse(*arguments, **named):
        raise AssertionError("the hub was asked")

    monkeypatch.setattr("huggingface_hub.file_exists", refuse)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", refuse)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy = Policy(load_base("tiny"), rank=4, alpha=8, targets=ALL_TARGETS)
        policy.reset(1)
        policy.set_state(policy.state())
        policy.save(tmp_path)
        policy.load(tmp_path)
        torch.cat(policy.logprobs(PROMPT, said(COMPLETIONS), 1.0)).sum().backward()
