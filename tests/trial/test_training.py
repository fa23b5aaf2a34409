"""Training an arm: what it starts from, how far it goes, what it writes, and what it refuses to resume."""

import json

import pytest
import torch
from letters_task import TRIAL, LettersTask, letters_trial
from small_models import random_ids, said
from whole_runs import learned, ledger, lines_of, repeatable, resume, run_letters

from loratrial.errors import RunFolderError, ScorerError
from loratrial.evidence.opened import open_run
from loratrial.learning import warm_start
from loratrial.policy.models import load_base
from loratrial.policy.policy import Policy
from loratrial.trial import training

ONE_ARM = TRIAL.partition("[arms.warm]")[0] + "{arm}" + "[evaluation]\nseeds = [7]\n"
GRPO = '[arms.trained]\nmethod = "grpo"\nfrom = "base"\nlearning_rate = 1e-2\n'
SUPERVISED = '[arms.trained]\nmethod = "supervised"\nfrom = "base"\nlearning_rate = 1e-2\n'


def one_arm(arm, *lines):
    return ONE_ARM.replace("{arm}", arm + "\n".join(lines) + "\n")


def policy_of(folder, arm=None):
    """The policy of an arm of a run, from its files."""
    spec = open_run(folder).spec
    policy = Policy(
        load_base("tiny"),
        rank=spec.adapter.rank,
        alpha=spec.adapter.alpha,
        targets=spec.adapter.targets,
    )
    policy.turn_off()
    if arm:
        policy.load(folder / "arms" / arm / "adapter")
    return policy


def score(policy):
    with torch.no_grad():
        return torch.cat(policy.logprobs(random_ids(40, 1), said([random_ids(8, 2)]), 1.5))


def test_a_trained_adapter_is_on_disk_as_it_was_trained_and_differs_from_where_it_started(finished):
    for arm, parent in (("warm", None), ("trained", "warm"), ("loo", None)):
        entry = json.loads((finished / "arms" / arm / "arm.json").read_text())
        assert entry["reload_difference"] == 0.0
        assert entry["complete"] is True
        assert not (finished / "arms" / arm / "checkpoint.safetensors").exists()
        moved = (score(policy_of(finished, arm)) - score(policy_of(finished, parent))).abs()
        assert moved.max() > 0.01


def test_an_arm_starts_from_its_parent_and_counts_its_updates_on(finished):
    warm, trained, loo = (
        json.loads((finished / "arms" / arm / "arm.json").read_text()) for arm in ("warm", "trained", "loo")
    )
    assert (warm["version"], trained["version"], loo["version"]) == (3, 3 + 4, 2)
    versions = [group[0].policy_version for group in ledger(finished, "arms/trained/ledger")]
    assert versions == [3, 3, 4, 4, 5, 6]
    assert ledger(finished, "arms/loo/ledger")[0][0].policy_version == 0
    # the first wave, sampled before any update, is what the parent samples
    policy = policy_of(finished, "warm")
    for group in ledger(finished, "arms/trained/ledger")[:2]:
        item = open_run(finished).task.dataset.split("train")[group[0].group].items[0]
        prompt = policy.prompt_ids([{"role": "user", "content": f"{item.public['ask']}|"}])
        for record in group:
            with torch.no_grad():
                (values,) = policy.logprobs(prompt, said([record.token_ids]), 1.5)
            assert record.logprobs == pytest.approx(values.tolist(), abs=1e-4)


def test_kl_is_exactly_nothing_at_the_first_update_from_the_base_and_from_a_warm_start(finished, tmp_path):
    from_warm = learned(finished / "arms/trained/updates.jsonl")
    from_base = learned(run_letters(tmp_path / "run", text=one_arm(GRPO)) / "arms/trained/updates.jsonl")
    for lines in (from_warm, from_base):
        divergences = [line["kl"] for line in lines if line["update"] is not None]
        assert divergences[0] == 0.0
        assert all(divergence > 0 for divergence in divergences[1:])


def test_sampler_and_trainer_are_compared_at_every_update_and_agree(finished):
    lines = [line for arm in ("trained", "loo") for line in lines_of(finished / f"arms/{arm}/updates.jsonl")]
    assert len(lines) == 6
    assert all(0 < line["max_logprob_difference"] < 1e-4 for line in lines)


def test_a_wave_that_was_begun_is_finished_and_no_other_is_begun(tmp_path):
    text = one_arm(GRPO, "parallel_streams = 2", "max_groups = 3")
    folder = run_letters(tmp_path / "run", text=text)
    assert len(ledger(folder, "arms/trained/ledger")) == 4
    lines = learned(folder / "arms/trained/updates.jsonl")
    assert [[entry["group"] for entry in line["groups"]] for line in lines] == [[0, 1], [2, 3]]


def test_streams_of_one_item_are_updated_from_one_by_one(tmp_path):
    folder = run_letters(tmp_path / "run", "task.items=1", text=one_arm(GRPO))
    lines = learned(folder / "arms/trained/updates.jsonl")
    assert [[entry["group"] for entry in line["groups"]] for line in lines] == [[0], [1], [2]]


def test_every_pass_walks_the_training_split_again(tmp_path):
    folder = run_letters(tmp_path / "run", "task.train_streams=1", text=one_arm(GRPO, "passes = 2"))
    groups = ledger(folder, "arms/trained/ledger")
    assert [(group[0].walk, group[0].item) for group in groups] == [
        ("train-0", 0),
        ("train-0", 1),
        ("train-1", 0),
        ("train-1", 1),
    ]


def test_a_training_group_may_have_other_numbers_of_candidates_and_of_updates(tmp_path):
    text = one_arm(GRPO, "candidates = 5", "updates_per_group = 2", "max_groups = 1")
    folder = run_letters(tmp_path / "run", text=text)
    assert len(ledger(folder, "arms/trained/ledger")[0]) == 5
    assert len(ledger(folder, "evaluation/base/eval-7")[0]) == 3
    lines = learned(folder / "arms/trained/updates.jsonl")
    assert [line["update"] for line in lines] == [0, 1]
    assert json.loads((folder / "arms/trained/arm.json").read_text())["version"] == 2


def test_supervised_examples_carry_gold_and_show_no_answer(tmp_path, monkeypatch):
    seen = []
    update = warm_start.supervised_update
    monkeypatch.setattr(training, "supervised_update", lambda *a: seen.append(a[2]) or update(*a))
    folder = run_letters(tmp_path / "run", text=one_arm(SUPERVISED, "passes = 2", "batch_size = 4"))
    assert [len(batch) for batch in seen] == [4, 2, 4, 2]
    run, policy = open_run(folder), policy_of(folder)
    expected = {}
    for stream in run.task.dataset.split("train"):
        state = ""
        for item in stream.items:
            word = run.task.dataset.target(item).private["word"]
            prompt = f"{item.public['ask']}|{state}"
            assert word not in prompt
            expected[prompt] = word
            state += word
    found = {}
    for example in (example for batch in seen for example in batch):
        text = policy.tokenizer.decode(example.prompt_ids)
        prompt = text.partition("user\n")[2].partition("<|im_end|>")[0]
        assert example.completion.token_ids[-1] in policy.eos_ids
        found[prompt] = policy.text(example.completion)
    assert found == expected


def test_a_supervised_arm_takes_the_first_examples_at_the_scheduled_rates_in_a_seeded_order(tmp_path):
    lines = {}
    for seed in ("", "seed = 11", "seed = 12"):
        text = one_arm(SUPERVISED, "max_examples = 5", "warmup_updates = 1", 'schedule = "linear"', seed)
        folder = run_letters(tmp_path / f"run{seed[-2:]}", text=text)
        lines[seed] = learned(folder / "arms/trained/updates.jsonl")
    rates = [line["learning_rate"] for line in lines[""]]
    assert rates == pytest.approx([0.005, 0.01, 0.0075, 0.005, 0.0025])
    assert sorted(line["examples"][0] for line in lines[""]) == [0, 1, 2, 3, 4]
    assert [line["update"] for line in lines[""]] == [0, 1, 2, 3, 4]
    assert lines["seed = 11"] == lines[""]
    assert [line["examples"] for line in lines["seed = 12"]] != [line["examples"] for line in lines[""]]


def test_gradient_checkpointing_and_candidates_per_pass_leave_the_adapter_as_it_was(tmp_path):
    ends = {}
    for name, overrides in {
        "plain": (),
        "checkpointing": ("model.gradient_checkpointing=true",),
        "one by one": ("model.candidates_per_pass=1",),
    }.items():
        folder = run_letters(
            tmp_path / name,
            "arms.trained.learning_rate=1e-4",
            *overrides,
            text=one_arm(GRPO, "max_groups = 3"),
        )
        ends[name] = policy_of(folder, "trained").state()
    for name, value in ends["plain"].items():
        assert torch.equal(ends["checkpointing"][name], value)
        torch.testing.assert_close(ends["one by one"][name], value, rtol=0, atol=1e-6)


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_checkpoints_are_written_as_often_as_their_interval_says(tmp_path, monkeypatch, seconds):
    saved = []
    save = training.save_checkpoint
    monkeypatch.setattr(training, "SECONDS_BETWEEN_CHECKPOINTS", seconds)
    monkeypatch.setattr(training, "save_checkpoint", lambda path, c: saved.append(c) or save(path, c))
    run_letters(tmp_path / "run", text=one_arm(GRPO))
    assert [(c.version, c.n_groups, c.n_lines) for c in saved] == (
        [(n, n, n) for n in range(1, 7)] if seconds == 0 else []
    )


@pytest.fixture
def stopped(tmp_path, monkeypatch):
    """A run whose scorer broke down in the last group of training, with a checkpoint after each update."""
    monkeypatch.setattr(training, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    read = LettersTask.read

    def broken(self, item, text, state):
        if (item.stream, item.index) == ("train-2", 1):
            raise RuntimeError("out of paper")
        return read(self, item, text, state)

    monkeypatch.setattr(LettersTask, "validate", lambda self: None)
    monkeypatch.setattr(LettersTask, "read", broken)
    folder = tmp_path / "stopped"
    with pytest.raises(ScorerError, match="out of paper"):
        run_letters(folder, text=one_arm(GRPO))
    monkeypatch.setattr(LettersTask, "read", read)
    return folder


def test_a_crash_of_the_scorer_leaves_a_run_that_goes_on_to_the_same_end(stopped, tmp_path):
    arm = stopped / "arms/trained"
    assert len(lines_of(arm / "ledger.jsonl")) == 5 * 3
    whole = run_letters(tmp_path / "other/whole", text=one_arm(GRPO))
    assert repeatable(resume(stopped)) == repeatable(whole)


@pytest.mark.parametrize("name", ["ledger.jsonl", "updates.jsonl"])
def test_a_record_that_says_less_than_its_checkpoint_is_refused(stopped, name):
    path = stopped / "arms/trained" / name
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    with pytest.raises(
        RunFolderError, match=f"{name} has lost lines .* delete the folder .*trained to train"
    ):
        resume(stopped)


def test_a_damaged_checkpoint_is_refused_in_one_line(stopped):
    path = stopped / "arms/trained/checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(RunFolderError, match=r"checkpoint\.safetensors is damaged") as error:
        resume(stopped)
    assert "\n" not in str(error.value)
    path.unlink()
    resume(stopped)


def test_a_run_made_only_of_tied_groups_takes_no_step_and_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(LettersTask, "validate", lambda self: None)
    score_of = LettersTask.score
    monkeypatch.setattr(
        LettersTask,
        "score",
        lambda self, target, reading: type(score_of(self, target, reading))(
            0.4, score_of(self, target, reading).figures
        ),
    )
    folder = run_letters(tmp_path / "run", text=one_arm(GRPO, "parallel_streams = 2"))
    lines = learned(folder / "arms/trained/updates.jsonl")
    assert [line["update"] for line in lines] == [None] * 4
    entry = json.loads((folder / "arms/trained/arm.json").read_text())
    assert (entry["version"], entry["reload_difference"]) == (0, 0.0)
    assert torch.equal(score(policy_of(folder, "trained")), score(policy_of(folder)))
    result = json.loads((folder / "result.json").read_text())["training"]["trained"]
    assert (result["updates"], result["tied_groups"]) == (0, 6)


def test_prompts_that_outgrow_the_context_are_refused_and_the_trial_ends(tmp_path):
    folder = run_letters(tmp_path / "run", "task.padding=40", "sampling.max_tokens=70", text=one_arm(GRPO))
    finishes = [{record.finish for record in group} for group in ledger(folder, "arms/trained/ledger")]
    assert finishes.count({"refused"}) == 3
    refused = [line for line in learned(folder / "arms/trained/updates.jsonl") if line["tokens"] == 0]
    assert [line["groups"][0]["skipped"] for line in refused] == ["no valid candidate"] * 3
    assert [line["update"] for line in refused] == [None] * 3


def test_the_trial_of_these_tests_has_groups_to_learn_from(finished):
    """The other tests would prove little on a run of tied groups."""
    training_result = json.loads((finished / "result.json").read_text())["training"]
    assert training_result["trained"]["tied_groups"] == 0
    assert training_result["trained"]["updates"] == 4
    assert letters_trial().arms["trained"].kl_penalty > 0
