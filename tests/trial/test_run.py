"""Whole runs: what stands in the folder, what is refused, and in which words."""

import json
import os
import shutil

import pytest
import torch
from letters_task import TRIAL, LettersTask, letters_trial
from whole_runs import repeatable, resume, run_letters

from loratrial import __version__
from loratrial.errors import DataError, ModelError, RunFolderError, ScorerError
from loratrial.evidence.folder import RunFolder
from loratrial.evidence.recount import recount
from loratrial.policy.models import load_base
from loratrial.progress import SilentProgress
from loratrial.spec import load, spec_hash
from loratrial.trial import run as run_module
from loratrial.trial.run import resume_trial, run_folder_for, run_trial

BASE_ONLY = TRIAL.partition("[arms.warm]")[0] + "[evaluation]\nseeds = [7]\n"


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A run that stopped before its last arm, with every arm before it trained and evaluated."""
    folder = tmp_path_factory.mktemp("stopped") / "run"
    train = run_module.train

    def stopping(run, policy, arm, progress):
        if arm == "loo":
            raise KeyboardInterrupt
        return train(run, policy, arm, progress)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module, "train", stopping)
        with pytest.raises(KeyboardInterrupt):
            run_letters(folder)
    return folder


@pytest.fixture
def unfinished(stopped, tmp_path):
    """A copy of that run, to be changed and gone on with."""
    return shutil.copytree(stopped, tmp_path / "unfinished")


def refused(folder, error=RunFolderError):
    """The one line with which resuming is refused."""
    with pytest.raises(error) as raised:
        resume(folder)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_a_run_that_is_repeated_makes_the_same_files_and_recounts_without_a_difference(finished, tmp_path):
    report = recount(finished)
    assert report.differences == []
    assert report.checked["ledgers"] == 6
    assert repeatable(run_letters(tmp_path / "run")) == repeatable(finished)


def test_run_json_says_what_the_run_is_and_names_no_place(finished):
    said = json.loads((finished / "run.json").read_text())
    spec = load(finished / "trial.toml")
    assert (said["status"], said["trial"], said["origin"]) == ("complete", "letters", "test")
    assert said["spec_sha256"] == spec_hash(spec) == spec_hash(letters_trial())
    assert said["base"]["base"] == "tiny"
    assert len(said["base"]["chat_template_sha256"]) == 64
    assert said["versions"]["loratrial"] == __version__
    assert said["versions"]["torch"] == torch.__version__
    assert said["device"] == "cpu, 1 threads"
    texts = [path.read_text() for path in finished.rglob("*.json*")]
    assert not any(str(finished.parent) in text or os.uname().nodename in text for text in texts)


def test_a_run_leaves_no_temporary_file_and_no_lock_that_is_held(finished):
    names = {path.name for path in finished.rglob("*") if path.is_file()}
    assert not [name for name in names if name.endswith((".tmp", ".part")) or "checkpoint" in name]
    with RunFolder(finished).lock():
        pass


def test_the_folder_of_a_trial_is_its_name_and_the_start_of_its_hash(tmp_path):
    spec = letters_trial()
    assert run_folder_for(spec, tmp_path) == tmp_path / f"letters-{spec_hash(spec)[:8]}"
    assert run_folder_for(letters_trial("trial.seed=12"), tmp_path) != run_folder_for(spec, tmp_path)


def test_a_folder_that_holds_a_run_is_not_run_into_again(finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    before = repeatable(folder)
    with pytest.raises(RunFolderError, match="holds a run already; resume it, or name another folder"):
        run_letters(folder, "trial.seed=12")
    assert repeatable(folder) == before


def test_a_folder_that_cannot_be_made_is_refused_in_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match=r"cannot be made \(.*\); name another with --to"):
        run_letters(tmp_path / "file" / "run")


def test_a_folder_has_one_writer(unfinished, tmp_path):
    with RunFolder(unfinished).lock():
        assert "is being written by another process" in refused(unfinished)
    new = tmp_path / "new"
    new.mkdir()
    with RunFolder(new).lock(), pytest.raises(RunFolderError, match="is being written by another process"):
        run_letters(new)
    assert [path.name for path in new.iterdir()] == ["lock"]


def test_a_finished_run_is_only_read(finished, tmp_path, monkeypatch):
    folder = shutil.copytree(finished, tmp_path / "run")
    monkeypatch.setattr(run_module, "load_base", None)
    result = resume_trial(folder, SilentProgress())
    assert result == json.loads((finished / "result.json").read_text())
    assert repeatable(folder) == repeatable(finished)


def test_an_unfinished_run_goes_on_without_training_again_what_is_whole(unfinished, finished, monkeypatch):
    trained, train = [], run_module.train
    monkeypatch.setattr(
        run_module, "train", lambda run, p, arm, g: trained.append(arm) or train(run, p, arm, g)
    )
    assert repeatable(resume(unfinished)) == repeatable(finished)
    assert trained == ["loo"]


def test_a_changed_trial_file_is_refused(unfinished):
    path = unfinished / "trial.toml"
    path.write_text(path.read_text().replace("learning_rate = 0.01", "learning_rate = 0.02"))
    assert refused(unfinished) == f"{path} has changed since the run began; run the trial anew"


@pytest.mark.parametrize("name", ["items.jsonl", "targets.jsonl"])
def test_changed_data_are_refused(unfinished, name):
    path = unfinished / "data" / name
    text = path.read_text()
    character = '"word":"' if name == "targets.jsonl" else '"ask":"'
    path.write_text(text.replace(character, character + "q", 1))
    assert path.read_text() != text
    assert refused(unfinished) == f"{unfinished / 'data'} has changed since the run began; run the trial anew"


def test_data_that_are_damaged_are_refused(unfinished):
    path = unfinished / "data/items.jsonl"
    path.write_text(path.read_text()[:-30])
    assert "items.jsonl" in refused(unfinished, DataError)


def test_an_adapter_that_is_not_the_one_on_record_is_refused(unfinished):
    path = unfinished / "arms/warm/adapter/adapter_model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-2] + b"\x00\x3f")
    assert "adapter is not the adapter that" in refused(unfinished)
    path.write_bytes(whole[:-40])
    assert "cannot be read as an adapter" in refused(unfinished, ModelError)
    path.unlink()
    assert "cannot be read as an adapter" in refused(unfinished, ModelError)


def test_an_arm_file_that_is_damaged_is_refused(unfinished):
    (unfinished / "arms/warm/arm.json").write_text("{")
    assert "arm.json is no JSON" in refused(unfinished)


def test_a_ledger_that_is_damaged_before_its_end_is_refused_with_its_line(unfinished):
    path = unfinished / "evaluation/base/eval-7.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:4], b"{}\n", *lines[5:]]))
    assert "eval-7.jsonl:5: not a ledger line" in refused(unfinished)


def test_what_is_no_run_is_refused(tmp_path):
    assert refused(tmp_path) == f"{tmp_path} is no run folder: it has no run.json"


def test_a_grader_that_fails_on_gold_answers_leaves_no_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(LettersTask, "gold", lambda *_: "")
    with pytest.raises(DataError, match="is worth nothing"):
        run_letters(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("overrides", "asking", "found"),
    [
        (["evaluation.split=evil"], "evaluation.split needs the split 'evil'", "eval, train"),
        (["task.eval_streams=0"], "evaluation.split needs the split 'eval'", "train"),
        (["task.train_streams=0"], "arms.warm needs the split 'train'", "eval"),
        (
            ["task.train_streams=0", "evaluation.in_sample=true"],
            "evaluation.in_sample needs the split",
            "eval",
        ),
        (["task.train_streams=0", "task.eval_streams=0"], "evaluation.split needs the split 'eval'", "none"),
    ],
)
def test_a_split_without_items_is_named_before_anything_is_done(tmp_path, overrides, asking, found):
    with pytest.raises(DataError) as error:
        run_letters(tmp_path / "run", *overrides)
    assert str(error.value).startswith(asking)
    assert f"(it has: {found})" in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_untrained_arms_need_no_training_split(tmp_path):
    folder = run_letters(tmp_path / "run", "task.train_streams=0", text=BASE_ONLY)
    assert json.loads((folder / "run.json").read_text())["status"] == "complete"
    assert not (folder / "arms").exists()


def test_a_gpu_that_is_not_there_is_refused_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ModelError, match=r"there is no GPU here; use --set model\.device=cpu"):
        run_letters(tmp_path / "run", "model.device=cuda", text=BASE_ONLY)


def test_the_run_says_which_gpu_it_ran_on(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "A GPU")

    class Policy:
        class model:  # noqa: N801
            device = torch.device("cuda")

    assert run_module._device(Policy) == "A GPU"


def test_a_run_on_the_other_architecture_in_bfloat16_recounts_too(tmp_path):
    folder = run_letters(
        tmp_path / "run", "model.base=tiny-llama", "model.dtype=bfloat16", "model.gradient_checkpointing=true"
    )
    assert recount(folder).differences == []
    for arm in ("warm", "trained", "loo"):
        entry = json.loads((folder / f"arms/{arm}/arm.json").read_text())
        assert entry["reload_difference"] == 0.0


def test_threads_and_the_precision_of_products_are_those_of_the_trial(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(torch, "set_num_threads", told.append)
    torch.backends.cuda.matmul.allow_tf32 = True
    run_module._policy(letters_trial("model.threads=3"), SilentProgress())
    run_module._policy(letters_trial("model.threads=0"), SilentProgress())
    assert told == [3, os.cpu_count()]
    assert torch.backends.cuda.matmul.allow_tf32 is False


def test_a_scorer_that_breaks_down_in_evaluation_leaves_a_run_that_goes_on(finished, tmp_path, monkeypatch):
    score = LettersTask.score

    def broken(self, target, reading):
        if target.stream == "eval-1" and not reading.valid:
            raise ValueError("no score")
        return score(self, target, reading)

    monkeypatch.setattr(LettersTask, "score", broken)
    with pytest.raises(ScorerError, match="no score"):
        run_letters(tmp_path / "run")
    monkeypatch.setattr(LettersTask, "score", score)
    assert repeatable(resume(tmp_path / "run")) == repeatable(finished)


def test_a_base_that_changed_since_trains_nothing_into_the_run(unfinished, monkeypatch):
    def other(*arguments):
        base = load_base(*arguments)
        base.identity["revision"] = "2"
        return base

    monkeypatch.setattr(run_module, "load_base", other)
    assert "was trained with other settings, data or version" in refused(unfinished)


def test_run_trial_returns_the_result_that_it_writes(tmp_path):
    result = run_trial(letters_trial(text=BASE_ONLY), tmp_path / "run", SilentProgress(), "test")
    assert result == json.loads((tmp_path / "run/result.json").read_text())
    assert set(result["sections"]["eval"]["arms"]) == {"base"}
