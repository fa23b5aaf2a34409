"""Puzzles as items and targets of the task contract, and the check that stored ones have that shape."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from loratrial.errors import DataError
from loratrial.tasks.repair.kinds import KindName
from loratrial.tasks.repair.puzzle import LABELS, Case, Puzzle
from loratrial.tasks.task import Dataset, Item, Stream, Target


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Case(_Part):
    inputs: dict[str, str]
    output: str


class _Verdict(_Part):
    failed_examples: int
    failed_hidden: int


class _Public(_Part):
    description: str
    examples: list[_Case] = Field(min_length=1)
    broken: str
    candidates: list[str] = Field(min_length=len(LABELS), max_length=len(LABELS))


class _Private(_Part):
    right: Literal["A", "B", "C", "D"]
    hidden: list[_Case] = Field(min_length=1)
    verdicts: list[_Verdict] = Field(min_length=len(LABELS), max_length=len(LABELS))
    mutation: str
    family: str
    level: int
    wording: Literal[0, 1]
    kinds: dict[str, KindName]


def to_rows(puzzle: Puzzle, split: str, number: int) -> tuple[Stream, Target]:
    """The stream of one item, named after its split and number, and its target."""
    name = f"{split}-{number:04d}"
    public = {
        "description": puzzle.description,
        "examples": _cases(puzzle.examples),
        "broken": puzzle.broken,
        "candidates": list(puzzle.candidates),
    }
    private = {
        "right": LABELS[puzzle.right],
        "hidden": _cases(puzzle.hidden),
        "verdicts": [
            {"failed_examples": verdict.failed_examples, "failed_hidden": verdict.failed_hidden}
            for verdict in puzzle.verdicts
        ],
        "mutation": puzzle.mutation,
        "family": puzzle.family,
        "level": puzzle.level,
        "wording": puzzle.wording,
        "kinds": dict(puzzle.kinds),
    }
    return Stream(name, split, (Item(name, 0, public),)), Target(name, 0, private)


def check_shape(dataset: Dataset) -> None:
    """Raises DataError, naming the item and the field, when a dataset is not one of repair puzzles."""
    for stream in dataset.streams:
        for item in stream.items:
            _check(_Public, item.public, f"item {item.stream}")
            _check(_Private, dataset.target(item).private, f"target {item.stream}")


def _cases(cases: Sequence[Case]) -> list[dict[str, Any]]:
    return [{"inputs": dict(case.inputs), "output": case.output} for case in cases]


def _check(model: type[_Part], part: Any, where: str) -> None:
    try:
        model.model_validate(dict(part))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(step) for step in first["loc"])
        raise DataError(
            f"repair: {where}, field {field}: {first['msg'].lower()}; use a dataset of the repair task"
        ) from None
