"""Which task a trial file means by `kind`: an entry point of the group `loratrial.tasks`, or `package:Name`.

The second form imports the module that it names, as running any program of one's own does: a trial file from
a stranger deserves the same look as their code. Left out: any configuration of search paths.
"""

from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel

from loratrial.errors import TrialFileError
from loratrial.tasks import dataset
from loratrial.tasks.task import Task

GROUP = "loratrial.tasks"
"""The entry point group in which a package registers its tasks."""

_MEMBERS = ("scorer_version", "options_model", "figures", "create", "messages", "read", "score", "gold")


def known_kinds() -> tuple[str, ...]:
    """The names of every registered task, sorted."""
    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def find_task(kind: str) -> type[Task]:
    """The task class that `kind` names.

    Raises TrialFileError when it is not registered, cannot be imported, or is not a task.
    """
    return _checked(kind, _imported(kind, *_place(kind)))


def dataset_writer(kind: str) -> Callable[[Any, Path], object]:
    """What writes the dataset of a task into a folder: `write_dataset(task, folder)` of the module that
    `kind` names where it has one, otherwise the two files of `tasks/dataset.py`.

    Raises TrialFileError as `find_task` does.
    """
    module, _ = _place(kind)
    own = getattr(_imported(kind, module, ""), "write_dataset", None)
    return own if callable(own) else lambda task, folder: dataset.write(task.dataset, folder)


def _place(kind: str) -> tuple[str, str]:
    """The module that holds a task, and its name there."""
    if ":" in kind:
        module, _, name = kind.partition(":")
        return module, name
    points = {point.name: point for point in entry_points(group=GROUP)}
    if kind not in points:
        raise TrialFileError(f"unknown task {kind!r}{_known(kind, points)}")
    return points[kind].module, points[kind].attr


def _known(kind: str, points: dict[str, EntryPoint]) -> str:
    near = get_close_matches(kind, points, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"{hint} (known: {', '.join(sorted(points))}; a task of your own is written 'package:Name')"


def _imported(kind: str, module: str, name: str) -> object:
    try:
        found: object = import_module(module)
        for part in filter(None, name.split(".")):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as problem:
        raise TrialFileError(f"task {kind!r} cannot be imported: {problem}") from problem
    return found


def _checked(kind: str, found: object) -> type[Task]:
    if not isinstance(found, type):
        raise TrialFileError(f"task {kind!r} is not a task: it is no class")
    missing = [member for member in _MEMBERS if not hasattr(found, member)]
    if missing:
        raise TrialFileError(f"task {kind!r} is not a task: it lacks {', '.join(missing)}")
    options: Any = cast(Any, found).options_model
    if not (isinstance(options, type) and issubclass(options, BaseModel)):
        raise TrialFileError(f"task {kind!r} is not a task: its options_model is not a pydantic model")
    if options.model_config.get("extra") != "forbid":
        raise TrialFileError(f"task {kind!r} would ignore unknown options: set extra='forbid' on its options")
    return cast(type[Task], found)
