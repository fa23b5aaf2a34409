"""A run as its files describe it: the trial, the task over the dataset beside it, and the walks it must hold.

Left out: what happened in the walks, which the ledgers say.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from loratrial.errors import RunFolderError
from loratrial.evidence.folder import RunFolder
from loratrial.evidence.order import walk_order
from loratrial.spec import GrpoArm, ReinforceArm, TrialSpec, load
from loratrial.tasks.choosing import Mode
from loratrial.tasks.dataset import read
from loratrial.tasks.registry import find_task
from loratrial.tasks.task import Item, Stream, Task

TRAIN_SPLIT = "train"
"""The split that every arm learns from."""


@dataclass(frozen=True)
class Evaluation:
    """One evaluation that every evaluated arm went through."""

    split: str
    mode: Mode
    seed: int
    in_sample: bool
    """Whether trained arms learned from these very items."""

    @property
    def section(self) -> str:
        """What of the result it belongs to: the split, and the mode where answers are not plain text."""
        return self.split if self.mode == "text" else f"{self.split}-{self.mode}"

    @property
    def walk(self) -> str:
        """The same for every mode, so that modes share their noise."""
        return f"eval-{self.seed}"


@dataclass(frozen=True)
class Place:
    """Where a group stands in a walk."""

    walk: str
    stream: Stream
    item: Item
    first: bool
    """Whether the stream begins here, with nothing carried."""


@dataclass(frozen=True)
class OpenedRun:
    """A run folder with its trial and its task."""

    folder: RunFolder
    spec: TrialSpec
    task: Task

    def evaluations(self) -> list[Evaluation]:
        """Every evaluation of the trial: the compared split first, then the in-sample one if there is one,
        each in every mode."""
        split = self.spec.evaluation.split
        asked = [
            (split, self.spec.evaluation.seeds, split == TRAIN_SPLIT),
            (TRAIN_SPLIT, self.spec.in_sample_seeds, True),
        ]
        return [
            Evaluation(name, mode, seed, in_sample)
            for name, seeds, in_sample in asked
            for mode in self.spec.evaluation_modes
            for seed in seeds
        ]

    def sampled_arms(self) -> dict[str, GrpoArm | ReinforceArm]:
        """The arms that learned from their own samples, and so have a training ledger."""
        return {name: arm for name, arm in self.spec.arms.items() if isinstance(arm, GrpoArm | ReinforceArm)}

    def evaluation_places(self, evaluation: Evaluation) -> Iterator[Place]:
        """The groups of one evaluation, in order."""
        return self._places(evaluation.split, evaluation.walk, self.spec.evaluation.parallel_streams)

    def training_places(self, arm: GrpoArm | ReinforceArm) -> Iterator[Place]:
        """The groups of an arm's whole training, in order; `max_groups` may end it earlier."""
        for number in range(arm.passes):
            yield from self._places(TRAIN_SPLIT, f"train-{number}", arm.parallel_streams)

    def _places(self, split: str, walk: str, parallel: int) -> Iterator[Place]:
        for wave in walk_order(self.task.dataset.split(split), parallel):
            for stream, item in wave:
                yield Place(walk, stream, item, first=item is stream.items[0])


def open_run(path: Path, *, complete: bool = True) -> OpenedRun:
    """The run at `path`; with `complete`, only one that was carried to its end.

    Raises RunFolderError when it is no run folder, is of another format, or is not complete; TrialFileError
    or DataError when its trial file or its data cannot be read.
    """
    folder = RunFolder(path)
    status = folder.read_run().get("status")
    if complete and status != "complete":
        raise RunFolderError(f"{path}: run is not complete; loratrial resume {path}")
    spec = load(folder.trial_file)
    task = find_task(spec.task.kind).create(spec.task.options, read(folder.data), spec.trial.seed)
    return OpenedRun(folder, spec, task)
