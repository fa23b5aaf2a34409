"""Answers that are one of a few labels: what a task offers for them, and the ways to ask for them.

`text`: the policy writes whatever it likes and the task reads the label out of it. `direct`: the answer
prefix is supplied and the label is drawn among the labels at once. `reasoning`: free text up to a budget,
ended by the policy or by the cap, then as in `direct`. In every way the task reads one text that ends in
the answer, so that scoring and recounting know no modes. Left out: tokens, which belong to the policy.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal, Protocol, TypeGuard, get_args

from loratrial.errors import DataError
from loratrial.tasks.task import Item, Task

Mode = Literal["text", "direct", "reasoning"]
MODES: tuple[Mode, ...] = get_args(Mode)


class ChoiceTask(Task, Protocol):
    """A task whose answer is one of a few labels."""

    labels: ClassVar[Sequence[str]]
    """The labels in the order in which a prompt shows them; each should be a single token of most models."""
    answer_prefix: ClassVar[str]
    """What stands before a label in an answer, such as `Answer:`. `read` takes the label after the last
    one."""

    def shown(self, item: Item, mode: Mode, rotation: int) -> Item:
        """`item` as a prompt shows it: asked for in `mode`, with what the labels stand for moved on by
        `rotation` places. `messages` and `read` take what this gives; what `read` makes of an answer, and so
        its score, does not depend on the rotation."""
        ...


def offers_choice(task: Task | type[Task]) -> bool:
    """Whether a task (or its class) is a `ChoiceTask`."""
    return all(hasattr(task, name) for name in ("labels", "answer_prefix", "shown"))


def is_choice_task(task: Task) -> TypeGuard[ChoiceTask]:
    """`offers_choice`, for type checkers."""
    return offers_choice(task)


def shown(task: Task, item: Item, mode: Mode, rotation: int) -> Item:
    """`item` as a prompt shows it; a task without labels shows it as it is."""
    return task.shown(item, mode, rotation) if is_choice_task(task) else item


def rotation_of(task: Task, rotate_labels: bool, candidate: int) -> int:
    """By how many places the labels are moved on for one candidate: one more than for the candidate
    before."""
    return candidate % len(task.labels) if rotate_labels and is_choice_task(task) else 0


def supplied_text(task: ChoiceTask, mode: Mode) -> str:
    """What is supplied before the label: the answer prefix, on a line of its own after reasoning."""
    return f"\n{task.answer_prefix}" if mode == "reasoning" else task.answer_prefix


def split_answer(task: ChoiceTask, text: str) -> tuple[str, str]:
    """The reasoning and the label of an output that ends in the answer; raises DataError for any other."""
    reasoning, prefix, label = text.rpartition(task.answer_prefix)
    if not prefix or label.strip() not in task.labels:
        raise DataError(
            f"task {task.kind!r}: the gold output ends in {text[-40:]!r}, not in {task.answer_prefix!r} and "
            f"one of the labels {', '.join(task.labels)}; change gold()"
        )
    return reasoning.rstrip("\n"), label.strip()
