"""The dry run: counts against a run that was carried out, and against numbers worked out by hand."""

import json
import tomllib
from pathlib import Path

import huggingface_hub
import pytest
import torch
from letters_task import TRIAL, LettersTask, letters_trial
from small_models import make_policy
from whole_runs import ledger

from loratrial.cli import main
from loratrial.errors import DataError, ModelError
from loratrial.policy import models
from loratrial.spec import load
from loratrial.trial.plan import plan

TRIALS = Path(__file__).parents[2] / "trials"


@pytest.fixture(autouse=True)
def _no_models(monkeypatch, tmp_path):
    """Neither a hub nor a cached model, and no way to load weights."""

    def refuse(*arguments, **named):
        raise OSError("no network")

    monkeypatch.setenv("LORATRIAL_CACHE", str(tmp_path / "no-cache"))
    monkeypatch.setattr(models, "snapshot_download", refuse)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    monkeypatch.setattr(models.AutoModelForCausalLM, "from_pretrained", refuse)
    monkeypatch.setattr(models, "load_base", refuse)


def arms(found):
    return {arm["arm"]: arm for arm in found["arms"]}


def test_groups_updates_and_prompts_are_those_of_the_run(finished):
    found = plan(letters_trial())
    planned = arms(found)
    assert list(planned) == ["base", "warm", "trained", "loo"]
    assert [(each["method"], each["from"]) for each in planned.values()] == [
        ("none", None),
        ("supervised", "base"),
        ("grpo", "warm"),
        ("reinforce", "base"),
    ]
    for arm in ("trained", "loo"):
        groups = ledger(finished, f"arms/{arm}/ledger")
        versions = json.loads((finished / f"arms/{arm}/arm.json").read_text())["version"]
        assert planned[arm]["groups"] == len(groups)
        assert planned[arm]["updates"] == versions - groups[0][0].policy_version
        assert planned[arm]["completion_tokens"] >= sum(len(r.token_ids) for g in groups for r in g)
    assert planned["warm"]["updates"] == 3
    (evaluation,) = found["evaluations_of_each_arm"]
    assert (evaluation["split"], evaluation["seed"], evaluation["groups"]) == ("eval", 7, 4)
    assert found["evaluated_arms"] == list(planned)


def test_tokens_are_counted_as_they_go_through_the_model():
    found = plan(letters_trial())
    planned = arms(found)
    # a prompt is its 3 or 4 letters and a bar between 25 others, and later the word of 5 that gold carried in
    first, second, gold = 25 + 3 + 1, 25 + 4 + 1 + 5, 5 + 1
    prompts, answers = 3 * (first + second), 3 * 2 * 3 * 6
    assert planned["warm"]["prompt_tokens"] == prompts
    assert planned["warm"]["gold_tokens"] == 6 * gold
    assert planned["warm"]["forward_tokens"] == prompts + 6 * gold
    assert (planned["trained"]["prompt_tokens"], planned["trained"]["completion_tokens"]) == (
        prompts,
        answers,
    )
    # sampling, the reference and the update
    assert planned["trained"]["forward_tokens"] == 3 * (prompts + answers)
    # sampling and the update, two groups
    assert planned["loo"]["forward_tokens"] == 2 * (first + second + 2 * 3 * 6)
    assert planned["base"]["forward_tokens"] == 0
    evaluation = 2 * (first + second) + 4 * 3 * 6
    assert found["evaluations_of_each_arm"][0]["forward_tokens"] == evaluation
    assert found["forward_tokens"] == sum(a["forward_tokens"] for a in found["arms"]) + 4 * evaluation
    assert found["longest_prompt"] == {"stream": "train-0", "item": 1, "tokens": second}
    assert found["counts"].startswith("prompts by the base's own tokenizer")
    assert found["warnings"] == []


def test_every_setting_that_costs_is_counted():
    head = "arms.trained."
    one = arms(plan(letters_trial()))["trained"]
    prompts, answers = one["prompt_tokens"], one["completion_tokens"]

    def tokens(*overrides):
        return arms(plan(letters_trial(*overrides)))["trained"]["forward_tokens"]

    assert tokens(head + "kl_penalty=0.0") == 2 * (prompts + answers)
    assert tokens(head + "updates_per_group=3") == 5 * (prompts + answers)
    assert tokens("model.candidates_per_pass=2") == prompts + answers + 2 * (2 * prompts + answers)
    assert tokens(head + "passes=2") == 6 * (prompts + answers)
    assert tokens(head + "candidates=6") == 3 * (prompts + 2 * answers)
    more = ("updates_per_group=3", "arms.warm.passes=2", "arms.warm.max_examples=3")
    twice = arms(plan(letters_trial(head + more[0], *more[1:])))
    assert twice["trained"]["updates"] == 12
    assert (twice["warm"]["examples"], twice["warm"]["updates"]) == (3, 4)


def test_the_adapters_parameters_are_those_that_a_policy_trains():
    for spec in (letters_trial(), letters_trial('adapter.targets=["k_proj", "gate_proj"]', "adapter.rank=5")):
        policy = make_policy(rank=spec.adapter.rank, targets=spec.adapter.targets)
        found = plan(spec)
        assert found["adapter_parameters"] == sum(value.numel() for value in policy.parameters.values())
        frozen = [value for value in policy.model.parameters() if not value.requires_grad]
        assert found["base_parameters"] == sum(value.numel() for value in frozen)


def test_prompts_that_do_not_fit_are_warned_of():
    def warnings(*overrides):
        return plan(letters_trial(*overrides))["warnings"]

    assert warnings("sampling.max_tokens=41") == []
    assert warnings("sampling.max_tokens=40") == [
        "the longest prompt (35 tokens) leaves 5 of 40 sampling.max_tokens: its completions are cut before "
        "sampling.max_completion_tokens = 6"
    ]
    assert warnings("sampling.max_tokens=35") == [
        "the longest prompt (35 tokens) has no room in 35 sampling.max_tokens: it is refused"
    ]
    assert warnings("task.padding=4090", "sampling.max_tokens=9000") == [
        "the longest prompt (4125 tokens) has no room in 4096 positions of the base: it is refused"
    ]
    assert warnings("sampling.max_completion_tokens=5") == [
        "the longest gold answer (6 tokens) is longer than sampling.max_completion_tokens = 5: no candidate "
        "can give it whole"
    ]
    found = plan(letters_trial("sampling.max_tokens=35"))
    assert arms(found)["trained"]["completion_tokens"] == 3 * 3 * 6  # the first item of each stream alone


def test_what_a_run_would_refuse_is_refused_here(monkeypatch):
    with pytest.raises(DataError, match="needs the split 'evil'"):
        plan(letters_trial("evaluation.split=evil"))
    with pytest.raises(ModelError, match=r"adapter\.targets: the base tiny has none of these layers"):
        plan(letters_trial('adapter.targets=["query"]'))
    monkeypatch.setattr(LettersTask, "gold", lambda *_: "")
    with pytest.raises(DataError, match="is worth nothing"):
        plan(letters_trial())


def test_a_missing_gpu_is_warned_of(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert plan(letters_trial("model.device=cuda"))["warnings"] == [
        "model.device is 'cuda', and there is no GPU here"
    ]


def test_the_published_trial_is_planned_offline_from_published_facts():
    found = plan(load(TRIALS / "notes-qwen3-4b.toml"))
    assert found["base"]["base"] == "Qwen/Qwen3-4B"
    assert (found["base_parameters"], found["adapter_parameters"]) == (4_022_468_096, 33_030_144)
    assert found["counts"].startswith("prompts estimated as characters / 4")
    assert found["warnings"][0].startswith("not fetched yet")
    grpo = arms(found)["grpo"]
    assert (grpo["groups"], grpo["candidates"], grpo["updates"]) == (100, 4, 100)
    assert grpo["completion_tokens"] == 100 * 4 * 8192
    evaluations = [(each["split"], each["seed"], each["groups"]) for each in found["evaluations_of_each_arm"]]
    assert evaluations == [("eval", 7322, 20), *(("train", seed, 100) for seed in (7319, 7320, 7321))]


def test_the_laptop_trial_is_planned_before_its_model_is_fetched():
    found = plan(load(TRIALS / "notes-smollm2.toml"))
    assert (found["base_parameters"], found["adapter_parameters"]) == (134_515_008, 4_884_480)
    assert found["warnings"][0].startswith("not fetched yet")
    assert 100 < found["longest_prompt"]["tokens"] < 2048 - 96


def test_the_tiny_trial_is_planned_with_its_tokenizer():
    found = plan(load(TRIALS / "notes-tiny.toml"))
    assert found["base"] == {"base": "tiny", "revision": "1"}
    assert found["counts"].startswith("prompts by the base's own tokenizer")
    assert [each["arm"] for each in found["arms"]] == ["base", "warm", "grpo"]


def test_a_dry_run_prints_the_plan_as_toml_and_as_json_and_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("letters.toml").write_text(TRIAL)
    printed = []
    for options in ([], ["--json"]):
        with pytest.raises(SystemExit) as ended:
            main(["run", "letters.toml", "--dry-run", *options])
        assert not ended.value.code
        printed.append(capsys.readouterr().out)
    expected = plan(letters_trial())
    assert json.loads(printed[1]) == expected
    del expected["arms"][0]["from"]  # an untrained arm comes from none, which TOML has no word for
    assert tomllib.loads(printed[0]) == expected
    assert [path.name for path in tmp_path.iterdir()] == ["letters.toml"]
