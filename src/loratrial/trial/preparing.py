"""The task of a trial before anything is trained: made from the trial file, proved, and with items to walk.

Left out: the task of a run that stands on disk, which `evidence.opened` makes from the data beside it.
"""

from loratrial.errors import DataError
from loratrial.evidence.opened import TRAIN_SPLIT
from loratrial.spec import TrialSpec
from loratrial.tasks.registry import find_task
from loratrial.tasks.task import Task


def make_task(spec: TrialSpec) -> Task:
    """The task of a trial over a dataset of its own.

    Raises DataError when its grader fails on gold answers or wrong ones, or when a split that the trial
    learns from or evaluates has no items.
    """
    task = find_task(spec.task.kind).create(spec.task.options, None, spec.trial.seed)
    task.validate()
    needed = {spec.evaluation.split: "evaluation.split"}
    if spec.evaluation.in_sample:
        needed[TRAIN_SPLIT] = "evaluation.in_sample"
    for name, arm in spec.arms.items():
        if arm.method != "none":
            needed.setdefault(TRAIN_SPLIT, f"arms.{name}")
    found = sorted({stream.split for stream in task.dataset.streams})
    for split, asking in needed.items():
        if split not in found:
            raise DataError(
                f"{asking} needs the split {split!r}, in which task {task.kind!r} has no items (it has: "
                f"{', '.join(found) or 'none'}); change the task's options or the trial"
            )
    return task
