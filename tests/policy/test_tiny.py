"""The random test models: the same everywhere, lively enough to sample from, prompted as Qwen3 is."""

import pytest
import torch

from loratrial.policy import tiny


@pytest.fixture(params=tiny.TINY_NAMES)
def name(request):
    return request.param


def _next_token_probabilities(name):
    """Probabilities [B, T, V] after random bytes."""
    ids = torch.randint(0, 256, (4, 48), generator=torch.Generator().manual_seed(7))
    with torch.no_grad():
        return ids, tiny.tiny_model(name).eval()(ids).logits.softmax(-1)


def test_the_weights_ignore_the_global_seed_and_leave_it_alone(name):
    torch.manual_seed(1)
    first = tiny.tiny_model(name).state_dict()
    torch.manual_seed(2)
    before = torch.get_rng_state()
    second = tiny.tiny_model(name).state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(first[key], second[key]) for key in first)


def test_the_weights_are_the_same_on_every_machine():
    weights = tiny.tiny_model("tiny").state_dict()
    drawn = weights["model.layers.1.self_attn.q_proj.weight"][3, :3]
    assert torch.allclose(drawn, torch.tensor([-0.406787, -0.194502, -0.035414]), atol=1e-6)


def test_both_architectures_share_the_sizes_but_not_the_layers():
    qwen, llama = tiny.tiny_model("tiny"), tiny.tiny_model("tiny-llama")
    assert (qwen.config.model_type, llama.config.model_type) == ("qwen3", "llama")
    qwen_names, llama_names = set(qwen.state_dict()), set(llama.state_dict())
    assert {key.rsplit(".", 2)[1] for key in qwen_names - llama_names} == {"q_norm", "k_norm"}
    assert not llama_names - qwen_names


def test_a_sample_is_neither_certain_nor_uniform(name):
    _, probabilities = _next_token_probabilities(name)
    entropy = -(probabilities * probabilities.log()).sum(-1).mean()
    assert 3.0 < entropy < 5.0  # uniform over 261 tokens: 5.56 nats


def test_an_answer_ends_now_and_then(name):
    _, probabilities = _next_token_probabilities(name)
    ends = probabilities[..., tiny.tiny_config(name).eos_token_id].sum(-1).mean()
    assert 0.001 < ends < 0.05


def test_the_last_token_does_not_simply_repeat(name):
    ids, probabilities = _next_token_probabilities(name)
    assert probabilities.gather(-1, ids[..., None]).mean() < 0.02


def test_only_parameters_take_the_dtype(name):
    model = tiny.tiny_model(name, torch.bfloat16)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16}
    assert {buffer.dtype for buffer in model.buffers()} == {torch.float32}


def test_the_id_of_a_byte_is_the_byte():
    tokenizer = tiny.tiny_tokenizer()
    text = "".join(map(chr, range(32, 1500))) + "\t\n\r\x00 \U0001f600"
    ids = tokenizer(text)["input_ids"]
    assert ids == list(text.encode())
    assert tokenizer.decode(ids) == text


def test_special_tokens_follow_the_bytes_and_thinking_is_not_special():
    tokenizer = tiny.tiny_tokenizer()
    texts = [*tiny.SPECIAL_TOKENS, *tiny.THINKING_TOKENS]
    assert tokenizer.convert_tokens_to_ids(texts) == [256, 257, 258, 259, 260]
    assert tokenizer.decode(range(256, 261), skip_special_tokens=True) == "<think></think>"
    assert len(tokenizer) == tiny.tiny_config("tiny").vocab_size


def test_with_thinking_off_the_prompt_ends_in_an_empty_thinking_block_as_qwen3_documents():
    tokenizer = tiny.tiny_tokenizer()
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    off = tokenizer.apply_chat_template(
        messages, tokenize=False, add_generation_prompt=True, enable_thinking=False
    )
    assert off == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n"
        "<|im_start|>assistant\n<think>\n\n</think>\n\n"
    )
    default = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert default.endswith("<|im_start|>assistant\n")
