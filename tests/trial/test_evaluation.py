"""Evaluation: every arm on the same noise, nothing learned, and nothing sampled twice."""

import json

import pytest
from letters_task import TRIAL
from whole_runs import ledger, resume, run_letters

from loratrial.policy.policy import Policy

STILL = (
    TRIAL.partition("[arms.warm]")[0]
    + """
[arms.still]
method = "supervised"
from = "base"
learning_rate = 1e-30
[arms.moved]
method = "supervised"
from = "base"
learning_rate = 0.1
[evaluation]
seeds = [7, 8]
in_sample = true
in_sample_seeds = [9]
"""
)


@pytest.fixture(scope="module")
def still(tmp_path_factory):
    """A run of an untrained arm, an arm that was trained without moving, and one that moved far."""
    return run_letters(tmp_path_factory.mktemp("still") / "run", text=STILL)


def said(folder, name):
    return [
        (record.seed, record.prompt_ids_sha256, record.token_ids, record.logprobs)
        for group in ledger(folder, name)
        for record in group
    ]


def test_arms_of_equal_weights_sample_identical_tokens_and_others_do_not(still):
    for evaluation in ("eval-7", "eval-8", "train-9"):
        arms = ("base", "still", "moved")
        base, unmoved, moved = (said(still, f"evaluation/{arm}/{evaluation}") for arm in arms)
        assert base == unmoved
        assert [record[0] for record in base] == [record[0] for record in moved]
        assert [record[2] for record in base] != [record[2] for record in moved]


def test_each_evaluation_seed_draws_anew(still):
    seven, eight = said(still, "evaluation/base/eval-7"), said(still, "evaluation/base/eval-8")
    assert len(seven) == len(eight) == 2 * 2 * 3
    assert not {record[0] for record in seven} & {record[0] for record in eight}
    assert [record[2] for record in seven] != [record[2] for record in eight]


def test_the_training_split_is_evaluated_beside_and_labelled_in_sample(still):
    result = json.loads((still / "result.json").read_text())
    assert {split: found["in_sample"] for split, found in result["sections"].items()} == {
        "eval": False,
        "train": True,
    }
    assert len(ledger(still, "evaluation/base/train-9")) == 3 * 2
    assert not (still / "evaluation/base/train-7.jsonl").exists()


def test_an_evaluation_learns_nothing(still):
    for arm, version in (("base", 0), ("moved", 6)):
        groups = [group for seed in (7, 8) for group in ledger(still, f"evaluation/{arm}/eval-{seed}")]
        assert {record.policy_version for group in groups for record in group} == {version}


def test_how_many_streams_go_side_by_side_changes_no_candidate(finished, tmp_path):
    text = TRIAL.replace("parallel_streams = 1", "parallel_streams = 0")
    assert text != TRIAL
    folder = run_letters(tmp_path / "run", text=text)
    for arm in ("base", "trained"):
        ours, theirs = (ledger(root, f"evaluation/{arm}/eval-7") for root in (folder, finished))
        assert [group[0].item for group in ours] != [group[0].item for group in theirs]
        by_place = {(group[0].stream, group[0].item): group for group in theirs}
        for group in ours:
            for record, expected in zip(group, by_place[group[0].stream, group[0].item], strict=True):
                assert record.token_ids == expected.token_ids
                assert record.logprobs == pytest.approx(expected.logprobs, abs=1e-5)


def test_only_the_arms_named_are_evaluated_and_all_are_trained(tmp_path):
    text = TRIAL.replace("[evaluation]", '[evaluation]\narms = ["base", "loo"]\ncandidates = 2')
    folder = run_letters(tmp_path / "run", text=text)
    assert sorted(path.name for path in (folder / "evaluation").iterdir()) == ["base", "loo"]
    assert sorted(path.name for path in (folder / "arms").iterdir()) == ["loo", "trained", "warm"]
    assert len(ledger(folder, "evaluation/loo/eval-7")[0]) == 2


def test_what_was_sampled_before_an_interruption_is_not_sampled_again(tmp_path, monkeypatch):
    sampled, sample = [], Policy.sample

    def interrupted(self, requests, temperature):
        if len(sampled) == 2:
            raise KeyboardInterrupt
        sampled.append([request.prompt_ids for request in requests])
        return sample(self, requests, temperature)

    monkeypatch.setattr(Policy, "sample", interrupted)
    base_only = TRIAL.partition("[arms.warm]")[0] + "[evaluation]\nseeds = [7]\nparallel_streams = 1\n"
    with pytest.raises(KeyboardInterrupt):
        run_letters(tmp_path / "run", text=base_only)
    monkeypatch.setattr(
        Policy, "sample", lambda self, r, t: sampled.append([x.prompt_ids for x in r]) or sample(self, r, t)
    )
    resume(tmp_path / "run")
    assert len(sampled) == 4
    resume(tmp_path / "run")
    assert len(sampled) == 4
