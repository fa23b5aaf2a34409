"""Notes about one user, session by session, scored against a truth that is a replay of events."""

from loratrial.tasks.notes.options import NotesOptions
from loratrial.tasks.notes.rows import write_dataset
from loratrial.tasks.notes.task import NotesTask

__all__ = ["NotesOptions", "NotesTask", "write_dataset"]
