"""The notes task: from sessions of plain text, keep notes about one user that stay true as time goes by.

This module ties the parts to the task contract; the rules live in the modules that it imports.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from loratrial.errors import DataError
from loratrial.tasks.notes.assignment import assign
from loratrial.tasks.notes.generate import generate
from loratrial.tasks.notes.gold import gold_update
from loratrial.tasks.notes.notes import MAX_SAVED_FACTS, InvalidNotesError, merge, parse, render
from loratrial.tasks.notes.options import NotesOptions
from loratrial.tasks.notes.prompts import messages
from loratrial.tasks.notes.references import REFERENCES
from loratrial.tasks.notes.scoring import value_recall
from loratrial.tasks.notes.validation import check_shape, validate
from loratrial.tasks.task import Dataset, Figure, Item, Message, Reading, Reference, Score, State, Target

FIGURES = (
    Figure("recall", "Value recall", "share"),
    Figure("precision", "Value precision", "share", headline=False),
    Figure("exact", "Exact values", "share", headline=False),
    Figure("assignment_f1", "Assignment F1", "share"),
    Figure("assignment_precision", "Assignment precision", "share", headline=False),
    Figure("assignment_recall", "Assignment recall", "share", headline=False),
    Figure("exact_state", "Exact state", "share", headline=False),
    Figure("valid", "Valid outputs", "share"),
    Figure("matched", "Values matched", headline=False),
    Figure("target_values", "Values in the target", better="neither", headline=False),
    Figure("missing", "Values missing", better="lower", headline=False),
    Figure("unsupported", "Unsupported values", better="lower"),
    Figure("stale", "Stale facts", better="lower", headline=False),
    Figure("misattributed", "Misattributed facts", better="lower", headline=False),
    Figure("invented", "Invented facts", better="lower", headline=False),
    Figure("unassigned", "Unassigned facts", better="lower", headline=False),
    Figure("conflicts", "Attributes with two values", better="lower", headline=False),
    Figure("note_lines", "Lines of notes", better="neither", headline=False),
)


@dataclass(frozen=True)
class NotesTask:
    """The notes task over one dataset. Make it with `create`."""

    options: NotesOptions
    dataset: Dataset

    kind: ClassVar[str] = "notes"
    scorer_version: ClassVar[str] = "notes-1"
    options_model: ClassVar[type[Any]] = NotesOptions
    figures: ClassVar[Sequence[Figure]] = FIGURES

    @classmethod
    def create(cls, options: NotesOptions, dataset: Dataset | None, seed: int) -> Self:
        """The task over `dataset`, or over the generated one; `seed` counts when `data_seed` is not given.
        Raises DataError when `dataset` is of another task."""
        if dataset is None:
            return cls(options, generate(options, seed))
        check_shape(dataset)
        return cls(options, dataset)

    def messages(self, item: Item, state: State) -> tuple[Message, ...]:
        """Instructions, and the sessions so far with the current time and the saved notes."""
        return messages(item, state, self.options.layout, self.options.instructions)

    def read(self, item: Item, text: str, state: State) -> Reading:
        """The facts that `text` says and the notes after merging them. An invalid text leaves the notes as
        they were. Raises DataError when `state` is not notes, which no reading of ours gives."""
        saved = _saved(state)
        try:
            update = parse(text)
            merged = merge(saved, update)
        except InvalidNotesError as problem:
            return Reading(valid=False, state=state, problem=str(problem))
        facts = [{"key": fact.key, "value": fact.value} for fact in update]
        return Reading(valid=True, state=render(merged), facts=facts)

    def score(self, target: Target, reading: Reading) -> Score:
        """Both scores of the notes after merging; an invalid output is worth what no notes are."""
        private = target.private
        facts = _saved(reading.state) if reading.valid else ()
        values = value_recall(facts, private["signatures"])
        assigned = assign(facts, private["attributes"])
        figures = {
            "recall": values.recall,
            "precision": values.precision,
            "exact": int(values.exact),
            "assignment_f1": assigned.f1,
            "assignment_precision": assigned.precision,
            "assignment_recall": assigned.recall,
            "exact_state": int(assigned.exact),
            "valid": int(reading.valid),
            "matched": len(values.matched),
            "target_values": values.target_values,
            "missing": len(values.missing),
            "unsupported": len(values.unsupported),
            "stale": assigned.stale,
            "misattributed": assigned.misattributed,
            "invented": assigned.invented,
            "unassigned": assigned.unassigned,
            "conflicts": assigned.conflicts,
            "note_lines": len(facts),
        }
        detail = {
            "matched": list(values.matched),
            "missing": list(values.missing),
            "unsupported": list(values.unsupported),
            "by_kind": dict(assigned.by_kind),
        }
        reward = assigned.f1 if self.options.reward == "assignment_f1" else len(values.matched)
        return Score(reward, figures, detail)

    def gold(self, item: Item, state: State, target: Target) -> str:
        """Only what is new or changed against `state`, under the keys that it already uses."""
        return gold_update(target.private, state)

    def references(self) -> Mapping[str, Reference]:
        """empty, copy_statements, copy_last_session, echo_notes and oracle."""
        return REFERENCES

    def validate(self) -> None:
        """Prove the grader on this dataset; raises DataError naming the first item that fails."""
        validate(self)


def _saved(state: State) -> tuple[Any, ...]:
    try:
        return parse(state, MAX_SAVED_FACTS)
    except InvalidNotesError as problem:
        raise DataError(f"carried notes cannot be read back ({problem}): start from empty notes") from None
