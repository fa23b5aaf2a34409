"""The repair task keeps the contract: prompts, answers, scores, seals, files."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from loratrial.errors import DataError, ScorerError
from loratrial.tasks import dataset as files
from loratrial.tasks.repair import RepairOptions, RepairTask, write_dataset
from loratrial.tasks.task import Dataset, Item, Reading, Target, Task

LABELS = "ABCD"


def first(task: RepairTask) -> tuple[Item, Target]:
    item = task.dataset.streams[0].items[0]
    return item, task.dataset.target(item)


def edited(task: RepairTask, edit: Callable[[dict[str, Any], dict[str, Any]], None]) -> RepairTask:
    """The task with the first puzzle's public and private parts edited."""
    item, target = first(task)
    public, private = dict(item.public), dict(target.private)
    edit(public, private)
    stream = replace(task.dataset.streams[0], items=(replace(item, public=public),))
    targets = {**task.dataset.targets, (item.stream, 0): replace(target, private=private)}
    return RepairTask(task.options, Dataset((stream, *task.dataset.streams[1:]), targets))


def test_it_is_a_task(small_task: RepairTask) -> None:
    assert isinstance(small_task, Task)
    assert small_task.figures[0].name == "success"
    assert small_task.figures[0].kind == "share"


def test_the_default_set_is_valid(default_task: RepairTask) -> None:
    default_task.validate()
    sizes = [len(default_task.dataset.split(split)) for split in ("train", "dev", "test")]
    assert sizes == [64, 32, 64]


def test_most_puzzles_have_four_candidates_that_pass_every_example(default_task: RepairTask) -> None:
    targets = default_task.dataset.targets.values()
    matching = [not any(v["failed_examples"] for v in target.private["verdicts"]) for target in targets]
    assert 0.7 < sum(matching) / len(matching) < 0.9


def test_many_operators_and_all_families_occur(default_task: RepairTask) -> None:
    private = [target.private for target in default_task.dataset.targets.values()]
    assert len({part["mutation"] for part in private}) >= 12
    assert {part["family"] for part in private} == set(RepairOptions().families)


def test_no_right_answer_of_training_is_right_elsewhere(default_task: RepairTask) -> None:
    def rights(split: str) -> set[str]:
        items = [stream.items[0] for stream in default_task.dataset.split(split)]
        targets = [default_task.dataset.target(item) for item in items]
        return {
            item.public["candidates"][LABELS.index(target.private["right"])]
            for item, target in zip(items, targets, strict=True)
        }

    assert not rights("train") & (rights("dev") | rights("test"))
    assert not rights("dev") & rights("test")


def test_the_sealed_split_is_not_there_unless_unsealed(small_options: RepairOptions) -> None:
    open_options = small_options.model_copy(update={"unseal": True})
    sealed, unsealed = (RepairTask.create(o, None, 3) for o in (small_options, open_options))
    assert sealed.dataset.split("test") == ()
    assert len(unsealed.dataset.split("test")) == 2
    assert sealed.dataset.split("train") == unsealed.dataset.split("train")
    again = RepairTask.create(small_options, unsealed.dataset, 3).dataset
    assert (again.streams, again.targets) == (sealed.dataset.streams, sealed.dataset.targets)
    assert RepairTask.create(open_options, unsealed.dataset, 3).dataset is unsealed.dataset


def test_the_data_seed_wins_over_the_seed_of_the_trial(
    small_task: RepairTask, small_options: RepairOptions
) -> None:
    fixed = small_options.model_copy(update={"data_seed": 3})
    assert RepairTask.create(fixed, None, 99).dataset == small_task.dataset
    assert RepairTask.create(small_options, None, 99).dataset != small_task.dataset


def test_the_prompt_shows_the_public_part_and_asks_for_one_letter(small_task: RepairTask) -> None:
    item, _ = first(small_task)
    (message,) = small_task.messages(item, "")
    assert message.role == "user"
    for shown in (item.public["description"], item.public["broken"], *item.public["candidates"]):
        assert shown in message.content
    assert message.content.count(" gives ") == small_task.options.examples
    assert message.content.endswith("Answer with one letter: A, B, C or D.")


def test_the_prompt_is_the_same_whichever_label_is_right(small_task: RepairTask) -> None:
    item, target = first(small_task)
    hidden = {case["output"] + repr(case["inputs"]) for case in target.private["hidden"]}
    shown = {case["output"] + repr(case["inputs"]) for case in item.public["examples"]}
    assert not hidden & shown
    assert set(item.public) == {"description", "examples", "broken", "candidates"}


def test_only_the_right_label_earns_and_the_state_stays(small_task: RepairTask) -> None:
    item, target = first(small_task)
    for label in LABELS:
        reading = small_task.read(item, f"Answer: {label}", "")
        score = small_task.score(target, reading)
        right = int(label == target.private["right"])
        assert reading.state == ""
        assert (score.reward, score.figures["success"], score.figures["valid"]) == (right, right, 1)
        assert score.figures[f"chose_{label.lower()}"] == 1
        assert (score.detail["failed_hidden"] == 0) == bool(right)
        assert score.detail["family"] == target.private["family"]
    assert {figure.name for figure in small_task.figures} == set(score.figures)


def test_an_output_without_an_answer_earns_nothing(small_task: RepairTask) -> None:
    item, target = first(small_task)
    reading = small_task.read(item, "I cannot tell.", "")
    score = small_task.score(target, reading)
    assert not reading.valid
    assert reading.problem
    assert score.reward == 0
    assert set(score.figures.values()) == {0}
    assert score.detail["verdict"] is None


def test_a_score_comes_from_running_the_candidate_and_a_contradiction_stops(small_task: RepairTask) -> None:
    _, target = first(small_task)
    lie = Reading(True, "", {"label": target.private["right"], "expression": "'neither this'"})
    with pytest.raises(ScorerError, match="fails 12 hidden inputs, but the label is"):
        small_task.score(target, lie)


def test_the_worked_answer_runs_every_candidate_and_ends_on_the_label(default_task: RepairTask) -> None:
    for stream in default_task.dataset.streams:
        item = stream.items[0]
        target = default_task.dataset.target(item)
        lines = default_task.gold(item, "", target).splitlines()
        assert lines[-1] == f"Answer: {target.private['right']}"
        meaning = [line for line in lines if line.endswith(f"It means {item.public['description']}.")]
        assert [line[0] for line in meaning] == [target.private["right"]]
        for label, verdict in zip(LABELS, target.private["verdicts"], strict=True):
            (line,) = (line for line in lines if line.startswith(f"{label} gives "))
            assert ("fails on example" in line) == bool(verdict["failed_examples"])


def test_the_worked_answer_says_when_a_candidate_has_no_value(small_task: RepairTask) -> None:
    def edit(public: dict[str, Any], private: dict[str, Any]) -> None:
        public["candidates"] = ["1 // 0", *public["candidates"][1:]]

    task = edited(small_task, edit)
    assert "A gives no value (zero_division), no value" in task.gold(*first(task)[:1], "", first(task)[1])


def test_gold_may_be_the_letter_alone(small_task: RepairTask) -> None:
    item, target = first(small_task)
    options = small_task.options.model_copy(update={"gold": "letter"})
    assert RepairTask(options, small_task.dataset).gold(item, "", target) == (
        f"Answer: {target.private['right']}"
    )


def test_the_oracle_is_always_right_and_every_reference_answers(small_task: RepairTask) -> None:
    references = small_task.references()
    for stream in small_task.dataset.streams:
        item = stream.items[0]
        target = small_task.dataset.target(item)
        for name, policy in references.items():
            reading = small_task.read(item, policy(item, "", target), "")
            assert reading.valid
            assert name != "oracle" or small_task.score(target, reading).reward == 1


@pytest.mark.parametrize(
    "options",
    [
        {"families": ()},
        {"families": ("sums", "sums")},
        {"families": ("poems",)},
        {"examples": 0},
        {"hidden": 3},
        {"matching_share": 1.1},
        {"train": -1},
        {"gold": "essay"},
        {"unknown": 1},
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RepairOptions(**options)


def test_every_option_is_described() -> None:
    assert all(field.description for field in RepairOptions.model_fields.values())


def test_the_shape_options_decide_what_is_shown_and_hidden() -> None:
    options = RepairOptions(families=("nested",), train=2, dev=0, examples=2, hidden=5)
    item, target = first(RepairTask.create(options, None, 0))
    assert len(item.public["examples"]) == 2
    assert len(target.private["hidden"]) == 5
    assert (target.private["family"], target.private["level"]) == ("nested", 5)


def test_a_written_dataset_reads_back_equal(small_task: RepairTask, tmp_path: Path) -> None:
    digest = write_dataset(small_task, tmp_path)
    assert digest == files.dataset_hash(small_task.dataset)
    again = RepairTask.create(small_task.options, files.read(tmp_path), 0)
    assert again.dataset == small_task.dataset
    assert "right" not in (tmp_path / "items.jsonl").read_text()
    again.validate()


def _swap_label(public: dict[str, Any], private: dict[str, Any]) -> None:
    private["right"] = LABELS[(LABELS.index(private["right"]) + 1) % 4]


def _wrong_output(public: dict[str, Any], private: dict[str, Any]) -> None:
    private["hidden"] = [{**private["hidden"][0], "output": "'no'"}, *private["hidden"][1:]]


def _unreadable_output(public: dict[str, Any], private: dict[str, Any]) -> None:
    private["hidden"] = [{**private["hidden"][0], "output": "1.5"}]


def _wrong_example(public: dict[str, Any], private: dict[str, Any]) -> None:
    public["examples"] = [{**case, "output": "'no'"} for case in public["examples"]]
    private["verdicts"] = [{**v, "failed_examples": len(public["examples"])} for v in private["verdicts"]]


def _healed(public: dict[str, Any], private: dict[str, Any]) -> None:
    public["broken"] = f"({public['candidates'][LABELS.index(private['right'])]})"


def _repeated(public: dict[str, Any], private: dict[str, Any]) -> None:
    public["broken"] = public["candidates"][0]


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (_swap_label, "hidden inputs"),
        (_wrong_output, "stored is"),
        (_unreadable_output, "cannot be read"),
        (_wrong_example, "fails an example"),
        (_healed, "fails no hidden input"),
        (_repeated, "the same"),
    ],
)
def test_validation_finds_a_puzzle_that_does_not_hold(
    small_task: RepairTask,
    edit: Callable[[dict[str, Any], dict[str, Any]], None],
    problem: str,
) -> None:
    with pytest.raises(DataError, match=problem):
        edited(small_task, edit).validate()


def test_validation_finds_a_grader_that_takes_wrong_answers(
    small_task: RepairTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loratrial.tasks.repair.task.read_label", lambda text, candidates: "A")
    with pytest.raises(DataError, match="train-0000: the output ending in"):
        small_task.validate()


def test_validation_reports_a_scorer_that_contradicts_the_label(
    small_task: RepairTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loratrial.tasks.repair.task.failures", lambda source, cases: [0])
    with pytest.raises(DataError, match="fails 1 hidden inputs, but the label is"):
        small_task.validate()


@pytest.mark.parametrize(
    ("part", "change", "field"),
    [
        ("public", {"candidates": ["x"]}, "candidates"),
        ("public", {"extra": 1}, "extra"),
        ("private", {"right": "E"}, "right"),
        ("private", {"level": "1"}, "level"),
        ("private", {"hidden": []}, "hidden"),
    ],
)
def test_a_dataset_of_another_shape_is_refused(
    small_task: RepairTask, part: str, change: dict[str, Any], field: str
) -> None:
    def edit(public: dict[str, Any], private: dict[str, Any]) -> None:
        (public if part == "public" else private).update(change)

    with pytest.raises(DataError, match=f"train-0000, field {field}"):
        RepairTask.create(small_task.options, edited(small_task, edit).dataset, 0)
