import json
import re

import pytest
from evidence_toy import TRIAL, Writer

from loratrial.errors import RunFolderError
from loratrial.evidence.figures import build_result, unmatched
from loratrial.evidence.folder import RunFolder
from loratrial.evidence.jsonio import pretty
from loratrial.evidence.ledger import read_groups


@pytest.fixture(scope="module")
def result(pristine):
    return build_result(pristine)


def test_result_json_is_what_the_builder_gives_byte_for_byte(pristine, result):
    assert (pristine / "result.json").read_text() == pretty(result)


def test_a_run_that_still_runs_can_have_its_result_built(run):
    RunFolder(run).write_run(status="running")
    assert build_result(run) == json.loads((run / "result.json").read_bytes())


def test_the_primary_figure_is_the_mean_over_items_of_the_mean_over_candidates(pristine, result):
    groups = list(read_groups(pristine / "evaluation/trained/eval-7.jsonl"))
    means = [sum(record.score.figures["recall"] for record in group) / len(group) for group in groups]
    cell = result["sections"]["eval"]["arms"]["trained"]["seeds"]["7"]["recall"]
    assert cell["mean"] == pytest.approx(sum(means) / len(means), abs=1e-12)
    assert cell["n_items"] == 12


def test_pooled_differences_have_items_and_not_seeds_as_their_number(result):
    split = result["sections"]["eval"]
    assert split["seeds"] == [7, 8]
    pooled = split["differences"]["trained"]["pooled"]["recall"]
    assert (pooled["n_items"], pooled["n_clusters"]) == (12, 5)
    arms = split["arms"]
    assert pooled["difference"] == pytest.approx(
        arms["trained"]["pooled"]["recall"]["mean"] - arms["base"]["pooled"]["recall"]["mean"]
    )


def test_tokens_validity_reward_and_pass_at_k_stand_beside_the_tasks_own_figures(result):
    labels = [(figure["name"], figure["label"]) for figure in result["figures"]]
    assert labels == [
        ("recall", "recall"),
        ("extra", "unsupported"),
        ("pass_at_k", "pass@3"),
        ("reward", "raw reward"),
        ("valid", "valid"),
        ("reasoning_tokens", "reasoning tokens"),
        ("truncated", "truncated"),
        ("tokens", "tokens"),
    ]


def test_the_training_split_is_labelled_in_sample_wherever_it_stands(result):
    assert {name: split["in_sample"] for name, split in result["sections"].items()} == {
        "eval": False,
        "train": True,
    }


def test_an_evaluation_on_the_training_split_itself_is_in_sample(tmp_path):
    text = TRIAL.replace("in_sample = true\nin_sample_seeds = [9]", 'split = "train"')

    class OnTrain(Writer):
        def evaluate(self, arm, split, seed, version):
            super().evaluate(arm, "train", seed, version)

    OnTrain(tmp_path / "run", text).write()
    split = build_result(tmp_path / "run")["sections"]["train"]
    assert split["in_sample"] is True
    assert split["seeds"] == [7, 8]


def test_references_carry_their_own_state(result):
    references = result["sections"]["eval"]["references"]
    assert references["oracle"]["recall"]["mean"] == 1.0
    assert references["empty"]["recall"]["mean"] == 0.0
    assert references["everything"]["extra"]["mean"] > 0
    assert "tokens" not in references["oracle"]


def test_training_is_summed_up_from_ledger_and_learning_record(pristine, result):
    groups = list(read_groups(pristine / "arms/trained/ledger.jsonl"))
    rewards = [[record.score.reward for record in group] for group in groups]
    training = result["training"]["trained"]
    assert training["groups"] == len(groups) == 10
    assert training["tied_groups"] == sum(len(set(row)) == 1 for row in rewards)
    assert training["candidates"] == 30
    assert training["mean_reward_first_quarter"] == pytest.approx(sum(map(sum, rewards[:2])) / 6)
    assert training["mean_reward_last_quarter"] == pytest.approx(sum(map(sum, rewards[-2:])) / 6)
    assert set(result["training"]) == {"trained", "loo"}


def change_all(path, pattern: str, new: str) -> None:
    text, n_changed = re.subn(pattern, new, path.read_text())
    assert n_changed
    path.write_text(text)


def drop_last_group(path) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-3]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop_last_group, r"eval-7 of stream 's\d' item \d is in one of them only"),
        (lambda path: change_all(path, r'"seed":\d+', '"seed":1'), "has other candidate seeds"),
        (lambda path: change_all(path, '"walk":"eval-7"', '"walk":"eval-6"'), "is in one of them only"),
        (lambda path: change_all(path, '"item":1', '"item":0'), "seed 7 has an item twice"),
    ],
)
def test_arms_that_were_not_measured_alike_are_not_compared(run, change, message):
    change(run / "evaluation/trained/eval-7.jsonl")
    with pytest.raises(RunFolderError, match=message) as caught:
        build_result(run)
    assert "arms 'trained' and 'base' were not measured alike on 'eval'" in str(caught.value)


def test_arms_with_other_numbers_of_candidates_are_not_compared(run):
    path = run / "evaluation/trained/eval-7.jsonl"
    lines = path.read_text().replace('"n_candidates":3', '"n_candidates":2').splitlines(keepends=True)
    path.write_text("".join(line for line in lines if '"candidate":2' not in line))
    with pytest.raises(RunFolderError, match="has other candidates"):
        build_result(run)


def test_arms_with_other_seeds_are_not_compared():
    assert unmatched({7: [], 8: []}, {7: []}) == ["seeds [7, 8] and [7]"]


def test_a_run_without_one_of_its_ledgers_has_no_result(run):
    (run / "evaluation/base/eval-8.jsonl").unlink()
    with pytest.raises(RunFolderError, match=r"eval-8\.jsonl is missing"):
        build_result(run)
