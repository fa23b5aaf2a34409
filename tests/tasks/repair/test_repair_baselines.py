"""No policy without a model does better than chance on the default set, by any look."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loratrial.tasks.repair import RepairOptions, RepairTask, baseline_report
from loratrial.tasks.repair.baselines import LOOKS, baseline_policies, choice, edit_distance, looks
from loratrial.tasks.task import Dataset

NAMES = {"majority", "random", "passes_examples", *LOOKS}


def test_every_baseline_of_the_default_set_is_at_chance(default_task: RepairTask) -> None:
    report = baseline_report(default_task.dataset)
    assert set(report) == NAMES
    assert [name for name, baseline in report.items() if not baseline.at_chance] == []
    assert {baseline.n for baseline in report.values()} == {160}


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_every_look_of_every_split_is_at_chance(default_task: RepairTask, split: str) -> None:
    report = baseline_report(default_task.dataset, split)
    assert [name for name in LOOKS if not report[name].at_chance] == []


def test_the_interval_is_that_of_guessing_among_four(default_task: RepairTask) -> None:
    baseline = baseline_report(default_task.dataset, "train")["random"]
    share = [math.comb(64, k) * 0.25**k * 0.75 ** (64 - k) for k in range(65)]
    assert sum(share[: baseline.low]) < 0.025 <= sum(share[: baseline.low + 1])
    assert sum(share[: baseline.high]) < 0.975 <= sum(share[: baseline.high + 1])


def test_a_leak_would_be_seen() -> None:
    task = RepairTask.create(RepairOptions(families=("sums",), train=8, dev=0, matching_share=0.0), None, 0)
    target = task.dataset.targets["train-0000", 0]
    leaking = Dataset(
        task.dataset.streams,
        {
            place: type(each)(each.stream, 0, {**each.private, "right": "A"})
            for place, each in task.dataset.targets.items()
        },
    )
    assert target.private["right"] in "ABCD"
    assert not baseline_report(leaking)["majority"].at_chance


def test_an_empty_dataset_has_an_empty_report() -> None:
    report = baseline_report(Dataset((), {}))
    assert {(baseline.right, baseline.n) for baseline in report.values()} == {(0, 0)}


def test_candidates_with_any_mark_are_right_as_often_as_others(default_task: RepairTask) -> None:
    """A mark is what a mutation may leave behind: were wrong candidates made otherwise than the right one,
    some mark would tell."""
    for mark in ("abs(", "-", "not ", "sorted(", "+ 1", "[::"):
        expected = variance = found = 0.0
        for stream in default_task.dataset.streams:
            item = stream.items[0]
            marked = [mark in candidate for candidate in item.public["candidates"]]
            share = sum(marked) / 4
            expected += share
            variance += share * (1 - share)
            found += marked["ABCD".index(default_task.dataset.target(item).private["right"])]
        assert abs(found - expected) <= 2.6 * math.sqrt(variance), mark


def test_policies_read_only_what_a_prompt_shows(small_task: RepairTask) -> None:
    item = small_task.dataset.streams[0].items[0]
    blank = type(small_task.dataset.target(item))(item.stream, 0, {})
    for policy in baseline_policies(small_task.dataset).values():
        assert policy(item, "", blank) == policy(item, "", small_task.dataset.target(item))


def test_looks_choose_what_they_say_wherever_a_candidate_stands() -> None:
    candidates = ["x - y", "abs(x) + y", "x", "x + yy"]
    for _ in range(4):
        candidates = [*candidates[1:], candidates[0]]
        seen = looks("x + y", candidates)
        chosen = {name: candidates[choice(name, seen[name], "x + y", candidates)] for name in LOOKS}
        tied = chosen.pop("closest")
        assert tied in ("x - y", "x + yy")
        assert chosen == {
            "shortest": "x",
            "longest": "abs(x) + y",
            "farthest": "abs(x) + y",
            "most_typical": "x - y",
            "odd_one_out": "abs(x) + y",
        }


def test_ties_go_to_every_candidate_alike() -> None:
    candidates = [f"x + {number}" for number in range(4)]
    found = [choice("shortest", [5] * 4, f"x - {seed}", candidates) for seed in range(400)]
    assert all(70 < found.count(place) < 130 for place in range(4))


words = st.text("abc", max_size=8)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(words, words, words)
def test_edit_distance_is_a_distance(left: str, right: str, third: str) -> None:
    assert (edit_distance(left, right) == 0) == (left == right)
    assert edit_distance(left, right) == edit_distance(right, left)
    assert edit_distance(left, third) <= edit_distance(left, right) + edit_distance(right, third)
    assert edit_distance(left, right) >= abs(len(left) - len(right))
    assert edit_distance(left, left + right) == len(right)
