import pytest

from loratrial.tasks.notes import NotesOptions, NotesTask
from loratrial.tasks.notes.world import Family

ALL: tuple[Family, ...] = ("person", "size", "favorite", "list", "compound", "temporary", "intent")


@pytest.fixture(scope="session")
def easy() -> NotesTask:
    """The task as a newcomer meets it."""
    return NotesTask.create(NotesOptions(), None, 11)


@pytest.fixture(scope="session")
def hard() -> NotesTask:
    """Every family, many updates, wording and values held out."""
    options = NotesOptions(
        train_users=5,
        eval_users=5,
        sessions=8,
        statements=6,
        updates=0.6,
        distractors=0.4,
        attributes=ALL,
        disjoint=("users", "templates", "values"),
    )
    return NotesTask.create(options, None, 5)
