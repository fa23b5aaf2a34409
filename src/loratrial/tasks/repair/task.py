"""The repair task: name the one candidate among four that repairs a broken expression.

This module ties the parts to the task contract; the rules live in the modules that it imports. A stream is
one item, and no state is carried."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from loratrial.errors import ScorerError
from loratrial.tasks import dataset as files
from loratrial.tasks.choosing import Mode
from loratrial.tasks.repair.answers import read_label
from loratrial.tasks.repair.baselines import baseline_policies
from loratrial.tasks.repair.generate import Shape, generate
from loratrial.tasks.repair.options import RepairOptions
from loratrial.tasks.repair.prompts import messages, worked_answer
from loratrial.tasks.repair.puzzle import ANSWER_PREFIX, LABELS
from loratrial.tasks.repair.rows import check_shape, to_rows
from loratrial.tasks.repair.scoring import failures
from loratrial.tasks.repair.validation import validate
from loratrial.tasks.task import (
    Dataset,
    Figure,
    Item,
    Message,
    Reading,
    Reference,
    Score,
    State,
    Stream,
    Target,
)

FIGURES = (
    Figure("success", "Right repairs", "share"),
    Figure("valid", "Valid outputs", "share"),
    *(
        Figure(f"chose_{label.lower()}", f"Chose {label}", "share", "neither", headline=False)
        for label in LABELS
    ),
)


@dataclass(frozen=True)
class RepairTask:
    """The repair task over one dataset. Make it with `create`."""

    options: RepairOptions
    dataset: Dataset

    kind: ClassVar[str] = "repair"
    scorer_version: ClassVar[str] = "repair-1"
    options_model: ClassVar[type[Any]] = RepairOptions
    figures: ClassVar[Sequence[Figure]] = FIGURES
    labels: ClassVar[Sequence[str]] = LABELS
    answer_prefix: ClassVar[str] = ANSWER_PREFIX

    @classmethod
    def create(cls, options: RepairOptions, dataset: Dataset | None, seed: int) -> Self:
        """The task over `dataset`, or over the generated one; `seed` counts when `data_seed` is not given.
        Without `unseal` the task has no split `test`, whatever `dataset` holds. Raises DataError when
        `dataset` is of another task."""
        if dataset is None:
            return cls(options, make_dataset(options, seed))
        check_shape(dataset)
        return cls(options, dataset if options.unseal else _sealed(dataset))

    def messages(self, item: Item, state: State) -> tuple[Message, ...]:
        """One user message that ends by asking for one letter."""
        return messages(item.public)

    def shown(self, item: Item, mode: Mode, rotation: int) -> Item:
        """The item with `rotation` candidates moved from the end of the list to its start, so that the
        label of each is so many places further on, and the question that `mode` asks."""
        candidates = item.public["candidates"]
        start = -rotation % len(candidates)
        moved = [*candidates[start:], *candidates[:start]]
        public = {**item.public, "candidates": moved, "mode": mode, "rotation": rotation}
        return Item(item.stream, item.index, public)

    def read(self, item: Item, text: str, state: State) -> Reading:
        """The label that the text ends on and the candidate behind it; invalid when it names none.

        `shown` is the label as the prompt had it, `label` the one of the same candidate in the dataset."""
        shown = read_label(text, item.public["candidates"])
        if shown is None:
            return Reading(valid=False, state=state, problem="no single answer among A, B, C and D")
        place = LABELS.index(shown)
        label = LABELS[(place - item.public.get("rotation", 0)) % len(LABELS)]
        facts = {"label": label, "shown": shown, "expression": item.public["candidates"][place]}
        return Reading(valid=True, state=state, facts=facts)

    def score(self, target: Target, reading: Reading) -> Score:
        """1 when the chosen candidate gives every hidden output, 0 otherwise or when nothing was chosen.

        The candidate is run; raises ScorerError when that contradicts the label."""
        private = target.private
        label = reading.facts["label"] if reading.valid else ""
        failed = failures(reading.facts["expression"], private["hidden"]) if reading.valid else []
        success = int(reading.valid and not failed)
        if reading.valid and success != (label == private["right"]):
            raise ScorerError(
                f"repair: candidate {label} of {target.stream} fails {len(failed)} hidden inputs, but the "
                f"label is {private['right']}; regenerate the dataset"
            )
        figures = {"success": success, "valid": int(reading.valid)}
        shown = reading.facts["shown"] if reading.valid else ""
        figures |= {f"chose_{each.lower()}": int(each == shown) for each in LABELS}
        detail = {
            "label": label,
            "shown": shown,
            "right": private["right"],
            "failed_hidden": len(failed),
            "verdict": private["verdicts"][LABELS.index(label)] if label else None,
            "mutation": private["mutation"],
            "family": private["family"],
            "level": private["level"],
        }
        return Score(success, figures, detail)

    def gold(self, item: Item, state: State, target: Target) -> str:
        """The worked answer, or the last line of it alone (`gold = "letter"`)."""
        right = LABELS.index(target.private["right"]) + item.public.get("rotation", 0)
        label = LABELS[right % len(LABELS)]
        if self.options.gold == "letter":
            return f"{ANSWER_PREFIX} {label}"
        return worked_answer(item.public, target.private, label)

    def references(self) -> Mapping[str, Reference]:
        """Every policy of `baseline_policies`, and the oracle."""

        def oracle(item: Item, state: State, target: Target) -> str:
            return f"Answer: {target.private['right']}"

        return {**baseline_policies(self.dataset), "oracle": oracle}

    def validate(self) -> None:
        """Prove the puzzles and the grader; raises DataError naming the first that fails."""
        validate(self)


def make_dataset(options: RepairOptions, seed: int) -> Dataset:
    """The dataset that options describe; the split `test` is not even generated unless unsealed."""
    seed = seed if options.data_seed is None else options.data_seed
    shape = Shape(options.families, options.examples, options.hidden, options.matching_share)
    sizes = {"train": options.train, "dev": options.dev, "test": options.test if options.unseal else 0}
    streams: list[Stream] = []
    targets: dict[tuple[str, int], Target] = {}
    for split, size in sizes.items():
        for number, puzzle in enumerate(generate(split, size, shape, seed)):
            stream, target = to_rows(puzzle, split, number)
            streams.append(stream)
            targets[target.stream, target.index] = target
    return Dataset(tuple(streams), targets)


def write_dataset(task: RepairTask, folder: Path) -> str:
    """Write the task's dataset as items and targets; returns the dataset's hash."""
    return files.write(task.dataset, folder)


def _sealed(dataset: Dataset) -> Dataset:
    streams = tuple(stream for stream in dataset.streams if stream.split != "test")
    kept = {stream.id for stream in streams}
    return Dataset(streams, {place: target for place, target in dataset.targets.items() if place[0] in kept})
