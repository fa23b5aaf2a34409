"""Base models: what a trial file's `model.base` names, loaded frozen, with what identifies it.

A base is a bundled alias (`smollm2-135m`, `tiny`, `tiny-llama`), a folder, or a hub repository at a pinned
revision. Weights are read from safetensors only and no code of a repository is run. Left out: adapters,
quantized loading, models split over devices.
"""

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.utils import logging as hub_logging
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
)
from transformers.utils import logging as transformers_logging

from loratrial.errors import ModelError
from loratrial.policy import bundled, chat, tiny

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
SMALL_FILES = ["*.json", "*.jinja", "*.txt", "*.model"]
GPU = "cuda"
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")

Progress = Callable[[str], None]


@dataclass(frozen=True)
class BaseModel:
    """A frozen base model, ready to be sampled from and to carry an adapter."""

    model: PreTrainedModel
    """In evaluation mode, no parameter requiring a gradient, in the dtype and on the device asked for."""
    tokenizer: PreTrainedTokenizerFast
    eos_ids: tuple[int, ...]
    """Every id that ends a sequence, sorted: of the generation configuration, the configuration, the
    tokenizer and the chat template."""
    identity: Mapping[str, str]
    """What tells this base from another, the same on every machine: never a folder of this one."""
    n_positions: int
    """Context length in tokens."""


@dataclass(frozen=True)
class BaseDescription:
    """What can be told about a base model without its weights."""

    identity: Mapping[str, str]
    config: PreTrainedConfig
    tokenizer: PreTrainedTokenizerFast | None
    """None when only the frozen facts of a known model are at hand; `note` says so."""
    n_parameters: int
    n_positions: int
    note: str | None = None


def load_base(
    base: str,
    revision: str | None = None,
    dtype: str = "float32",
    device: str = "cpu",
    progress: Progress | None = None,
) -> BaseModel:
    """Load the base model that `base` names.

    Args:
        base: `smollm2-135m`, `tiny`, `tiny-llama`, a model folder, or a hub id `owner/name`.
        revision: the hub commit; needed for a hub id, and only there.
        dtype: `float32`, `bfloat16` or `float16`.
        device: a torch device, such as `cpu` or `cuda:0`; `auto` is a GPU when there is one.
        progress: called with a sentence when something slow begins.

    Raises:
        ModelError: the base, revision, dtype or device does not exist here, or its files are damaged.
    """
    say = progress or (lambda message: None)
    if dtype not in DTYPES:
        raise ModelError(f"model.dtype is {dtype!r}: choose one of {', '.join(DTYPES)}")
    place = _device(device)
    if base in tiny.TINY_NAMES:
        model = tiny.tiny_model(base, DTYPES[dtype])
        return _finish(model, tiny.tiny_tokenizer(), _tiny_identity(base), place)
    folder, identity = _find(base, revision, say, with_weights=True)
    tokenizer = _load_tokenizer(base, folder)
    say(f"loading {base}")
    with _one_line_errors(base), _quiet_libraries():
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=DTYPES[dtype],
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
        )
    model, loading = loaded
    bundled.refuse_missing_weights(base, loading)
    return _finish(model, tokenizer, identity, place)


def describe_base(base: str, revision: str | None = None) -> BaseDescription:
    """What is known of a base model without loading, or downloading, its weights.

    The identity is the one that `load_base` gives. A model of `KNOWN_FACTS` that is not on this machine is
    described from those facts, with no tokenizer and a note, and without a wait for the hub.

    Raises:
        ModelError: as for `load_base`.
    """
    if base in tiny.TINY_NAMES:
        return _description(_tiny_identity(base), tiny.tiny_config(base), tiny.tiny_tokenizer())
    if base == bundled.BUNDLED_NAME and not bundled.is_cached():
        return _description(_bundled_identity(), known_config(base), None, "not fetched yet")
    try:
        folder, identity = _find(
            base, revision, lambda message: None, with_weights=False, only_local=base in KNOWN_FACTS
        )
    except ModelError:
        if base not in KNOWN_FACTS or not revision:
            raise
        identity = {"base": base, "revision": revision}
        return _description(identity, known_config(base), None, "not fetched yet")
    with _one_line_errors(base):
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    return _description(identity, config, _load_tokenizer(base, folder))


QWEN3_4B = {
    "vocab_size": 151_936,
    "hidden_size": 2560,
    "intermediate_size": 9728,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "tie_word_embeddings": True,
    "eos_token_id": [151_645, 151_643],
}

KNOWN_FACTS: Mapping[str, tuple[type[PreTrainedConfig], Mapping[str, Any]]] = {
    "Qwen/Qwen3-4B": (Qwen3Config, {**QWEN3_4B, "max_position_embeddings": 40_960}),
    "Qwen/Qwen3-4B-Instruct-2507": (Qwen3Config, {**QWEN3_4B, "max_position_embeddings": 262_144}),
    bundled.BUNDLED_NAME: (
        LlamaConfig,
        {
            "vocab_size": 49_152,
            "hidden_size": 576,
            "intermediate_size": 1536,
            "num_hidden_layers": 30,
            "num_attention_heads": 9,
            "num_key_value_heads": 3,
            "tie_word_embeddings": True,
            "eos_token_id": [2, 0],
            "max_position_embeddings": bundled.N_POSITIONS,
        },
    ),
}
"""Architecture of well-known bases, as their authors published it, so that a trial can be costed offline."""


def known_config(base: str) -> PreTrainedConfig:
    """The configuration of a base of `KNOWN_FACTS`, built from the frozen facts alone."""
    kind, facts = KNOWN_FACTS[base]
    return kind(**facts)


def n_parameters_of(config: PreTrainedConfig) -> int:
    """The parameters of a causal language model of this configuration, tied ones once. Takes no memory."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]
    return sum(parameter.numel() for parameter in model.parameters())


def _find(
    base: str, revision: str | None, say: Progress, *, with_weights: bool, only_local: bool = False
) -> tuple[Path, Mapping[str, str]]:
    """The folder that holds a base's files, and the base's identity."""
    if base == bundled.BUNDLED_NAME:
        return bundled.fetch(say), _bundled_identity()
    is_hub_id = HUB_ID.fullmatch(base) is not None
    folder = Path(base).expanduser()
    if folder.is_dir() and not (is_hub_id and revision):
        return folder, _folder_identity(folder)
    if not is_hub_id:
        known = ", ".join((bundled.BUNDLED_NAME, *tiny.TINY_NAMES))
        raise ModelError(
            f"model.base is {base!r}, which is no folder here: give an existing folder, a hub id owner/name "
            f"with model.revision, or one of {known}"
        )
    if not revision:
        raise ModelError(
            f"model.base is {base!r}, which is no folder here and, as a hub id, has no model.revision: pin "
            f"the commit to use"
        )
    patterns = [*SMALL_FILES, "model*.safetensors"] if with_weights else SMALL_FILES
    say(f"looking up {base} at {revision}")
    try:
        with _quiet_libraries():
            snapshot = Path(
                snapshot_download(
                    base, revision=revision, allow_patterns=patterns, local_files_only=only_local
                )
            )
    except Exception as error:
        raise ModelError(
            f"cannot get {base} at revision {revision} from the hub ({_first_line(error)}): check the name, "
            f"the revision, your access and the network, or set model.base to a folder that holds the model"
        ) from None
    return snapshot, {"base": base, "revision": snapshot.name}


def _load_tokenizer(base: str, folder: Path) -> PreTrainedTokenizerFast:
    with _one_line_errors(base):
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise ModelError(f"the tokenizer of {base} has no tokenizer.json: add one to the model's folder")
    return tokenizer


def _finish(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    identity: Mapping[str, str],
    place: torch.device,
) -> BaseModel:
    # Adapters write the base's name into their own configuration: it must not be a folder of this machine.
    model.name_or_path = model.config._name_or_path = tokenizer.name_or_path = identity["base"]
    nn.Module.to(model, place)
    model.train(False).requires_grad_(False)
    eos_ids = set(chat.end_of_sequence_ids(tokenizer))
    for source in (model.generation_config, model.config):
        declared = getattr(source, "eos_token_id", None)
        eos_ids.update(declared if isinstance(declared, list) else [] if declared is None else [declared])
    return BaseModel(model, tokenizer, tuple(sorted(eos_ids)), identity, _n_positions(model.config))


def _description(
    identity: Mapping[str, str],
    config: PreTrainedConfig,
    tokenizer: PreTrainedTokenizerFast | None,
    reason: str | None = None,
) -> BaseDescription:
    note = reason and f"{reason}: described from published facts, token counts estimated from characters"
    return BaseDescription(identity, config, tokenizer, n_parameters_of(config), _n_positions(config), note)


def _n_positions(config: PreTrainedConfig) -> int:
    return int(config.get_text_config().max_position_embeddings)


def _tiny_identity(name: str) -> dict[str, str]:
    return {"base": name, "revision": tiny.TINY_REVISION}


def _bundled_identity() -> dict[str, str]:
    return {
        "base": bundled.BUNDLED_NAME,
        "revision": bundled.PACKAGE,
        "weights_sha256": bundled.GGUF_SHA256,
    }


def _folder_identity(folder: Path) -> dict[str, str]:
    """The folder's own name, and one hash over its weights and one over its other model files."""
    weights = sorted(folder.glob("*.safetensors"))
    if not (folder / "config.json").is_file() or not weights:
        raise ModelError(
            f"the folder {folder} is no model: it needs config.json, tokenizer files and weights as "
            f".safetensors"
        )
    others = sorted({path for pattern in SMALL_FILES for path in folder.glob(pattern)})
    return {
        "base": folder.resolve().name,
        "weights_sha256": _sha256_of_all(weights),
        "files_sha256": _sha256_of_all(others),
    }


def _sha256_of_all(paths: list[Path]) -> str:
    lines = "".join(f"{bundled.sha256_of(path)}  {path.name}\n" for path in paths)
    return sha256(lines.encode()).hexdigest()


def _device(name: str) -> torch.device:
    if name == "auto":
        name = GPU if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ModelError(
            f"model.device is {name!r}, which torch cannot use here ({_first_line(error)}): set it to cpu, "
            f"or install a torch build for the device"
        ) from None
    return device


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".:") if lines else type(error).__name__


@contextmanager
def _one_line_errors(base: str) -> Iterator[None]:
    """Turn what the libraries raise over unreadable model files into one line."""
    try:
        yield
    except Exception as error:
        raise ModelError(
            f"cannot load {base} ({_first_line(error)}): check that its files are whole and that "
            f"transformers knows its architecture"
        ) from error


@contextmanager
def _quiet_libraries() -> Iterator[None]:
    """Keep the libraries' bars and warnings of retries off the terminal, which belongs to this package."""
    verbosity = hub_logging.get_verbosity()
    hub_logging.set_verbosity(logging.ERROR)
    shown = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        hub_logging.set_verbosity(verbosity)
        if shown:
            transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]
