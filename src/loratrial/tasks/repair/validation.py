"""The proof that a dataset of puzzles and its grader hold together, item by item."""

from loratrial.errors import DataError, ScorerError
from loratrial.tasks.repair.puzzle import LABELS
from loratrial.tasks.repair.rows import check_shape
from loratrial.tasks.repair.scoring import failures
from loratrial.tasks.task import Item, Target, Task


def validate(task: Task) -> None:
    """Raises DataError naming the first puzzle in which: the right candidate fails an example or a hidden
    input, a wrong one or the broken expression fails none, a stored verdict is not what running gives, or the
    grader takes a wrong answer, or refuses the gold one."""
    check_shape(task.dataset)
    for stream in task.dataset.streams:
        for item in stream.items:
            target = task.dataset.target(item)
            try:
                problem = _puzzle_problem(item, target) or _grader_problem(task, item, target)
            except ScorerError as error:
                problem = str(error)
            if problem:
                raise DataError(f"repair: puzzle {stream.id}: {problem}; regenerate the dataset")


def _puzzle_problem(item: Item, target: Target) -> str:
    hidden, examples = target.private["hidden"], item.public["examples"]
    candidates = item.public["candidates"]
    if len({*candidates, item.public["broken"]}) != len(LABELS) + 1:
        return "two of the expressions are the same"
    for label, candidate, stored in zip(LABELS, candidates, target.private["verdicts"], strict=True):
        found = {
            "failed_examples": len(failures(candidate, examples)),
            "failed_hidden": len(failures(candidate, hidden)),
        }
        if found != stored:
            return f"candidate {label} gives {found}, stored is {stored}"
        if (label == target.private["right"]) != (found["failed_hidden"] == 0):
            return f"candidate {label} fails {found['failed_hidden']} hidden inputs"
        if label == target.private["right"] and found["failed_examples"]:
            return f"the right candidate {label} fails an example"
    if not failures(item.public["broken"], hidden):
        return "the broken expression fails no hidden input"
    return ""


def _grader_problem(task: Task, item: Item, target: Target) -> str:
    outputs = {f"Answer: {label}": int(label == target.private["right"]) for label in LABELS}
    outputs |= {"I cannot tell.": 0, task.gold(item, "", target): 1}
    for output, expected in outputs.items():
        reward = task.score(target, task.read(item, output, "")).reward
        if reward != expected:
            return f"the output ending in {output[-20:]!r} scores {reward}, not {expected}"
    return ""
