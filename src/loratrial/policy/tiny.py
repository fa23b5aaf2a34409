"""Random models of a few layers, built in memory in well under a second: what the tests train and sample.

`tiny` has Qwen3's architecture and its manner of prompting (ChatML, an empty thinking block when thinking is
off); `tiny-llama` is the same size in the Llama architecture. Both speak bytes: token id = byte value, then
five special tokens. They know no language; what holds for them is shapes, masks, gradients and seeds. Left
out: any file, any download, any claim about quality.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from loratrial.seeds import derive_seed

ARCHITECTURES: Mapping[str, tuple[type[PreTrainedConfig], type[PreTrainedModel]]] = {
    "tiny": (Qwen3Config, Qwen3ForCausalLM),
    "tiny-llama": (LlamaConfig, LlamaForCausalLM),
}
TINY_NAMES = tuple(ARCHITECTURES)
TINY_REVISION = "1"
N_POSITIONS = 4096

END_OF_TURN = "<|im_end|>"
END_OF_TEXT = "<|endoftext|>"
SPECIAL_TOKENS = ("<|im_start|>", END_OF_TURN, END_OF_TEXT)
THINKING_TOKENS = ("<think>", "</think>")

CHAT_TEMPLATE = (
    "{%- for message in messages %}"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}"
    "{{- '<|im_start|>assistant\\n' }}"
    "{%- if enable_thinking is defined and enable_thinking is false %}"
    "{{- '<think>\\n\\n</think>\\n\\n' }}"
    "{%- endif %}"
    "{%- endif %}"
)

# Chosen so that the logits of a next token spread by about 1.6 (a group of samples differs, and ends now and
# then) and the last token read does not simply repeat, as it does when a tied embedding outweighs the layers.
EMBEDDING_STD = 0.2
LAYER_STD = 0.25


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level tokenizer whose id of a byte is the byte, with ids 256 to 260 for the special tokens.

    As in Qwen3, `<think>` and `</think>` are single tokens but not special ones: decoding keeps them.
    """
    vocabulary = {letter: byte for byte, letter in enumerate(_byte_letters())}
    raw = Tokenizer(BPE(vocab=vocabulary, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.decoder = decoders.ByteLevel()
    raw.add_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL_TOKENS])
    raw.add_tokens([AddedToken(text, special=False, normalized=False) for text in THINKING_TOKENS])
    tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=raw,
        eos_token=END_OF_TURN,
        pad_token=END_OF_TEXT,
        model_max_length=N_POSITIONS,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def tiny_config(name: str) -> PreTrainedConfig:
    """The configuration of `tiny` (Qwen3) or `tiny-llama` (Llama): 2 layers, D = 64, V = 261, 4 heads on 2
    key-value heads, tied embeddings."""
    sizes: dict[str, Any] = {
        "vocab_size": 256 + len(SPECIAL_TOKENS) + len(THINKING_TOKENS),
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": N_POSITIONS,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": [257, 258],
        "pad_token_id": 258,
    }
    return ARCHITECTURES[name][0](**sizes)


def tiny_model(name: str, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """The model of `name` on the CPU, in training mode, with the same weights everywhere.

    Each matrix is drawn by its own NumPy generator, seeded by the matrix's name, so the weights depend
    neither on torch's version nor on any global seed; torch's own generator is left as it was. Only the
    parameters take the dtype: rotary frequencies stay float32, as they do in a model loaded from files.
    """
    with torch.random.fork_rng(devices=[]):
        model = ARCHITECTURES[name][1](tiny_config(name))
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            if parameter.ndim == 1:
                continue
            std = EMBEDDING_STD if "embed_tokens" in parameter_name else LAYER_STD
            seed = derive_seed("tiny weights", name, parameter_name)
            drawn = np.random.Generator(np.random.PCG64(seed)).standard_normal(tuple(parameter.shape))
            parameter.copy_(torch.from_numpy(drawn * std))
    for parameter in model.parameters():
        parameter.data = parameter.data.to(dtype)
    model.config.dtype = dtype
    return model


def _byte_letters() -> list[str]:
    """The printable letter that byte-level tokenizers use for each byte, in byte order (GPT-2's table)."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]
