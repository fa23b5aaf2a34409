"""What a perfect note-taker writes: complete canonical notes, and the update for given saved notes."""

from collections.abc import Mapping

from loratrial.tasks.notes.assignment import AttributeIndex
from loratrial.tasks.notes.notes import MAX_SAVED_FACTS, Fact, parse, render
from loratrial.tasks.notes.values import render_value, text_signature, value_signature
from loratrial.tasks.task import Json, State

NO_CHANGES = "No changes."


def canonical_notes(private: Mapping[str, Json]) -> str:
    """Everything that stands, one fact a line under its canonical key (`default size hats: unknown`)."""
    return render(
        [Fact(attribute["key"], render_value(attribute["value"])) for attribute in private["attributes"]]
    )


def gold_update(private: Mapping[str, Json], state: State) -> str:
    """Only what is new or changed against the saved notes, or `No changes.`

    A fact that is saved under several keys is corrected under each key that holds a wrong value, so that
    none contradicts it; a fact that is not saved gets its canonical key. What the notes hold beside the
    target cannot be deleted and stays.
    """
    attributes = private["attributes"]
    index = AttributeIndex([attribute["key"] for attribute in attributes])
    held: dict[int, list[Fact]] = {}
    for fact in parse(state, MAX_SAVED_FACTS):
        place = index.find(fact.key)
        if place is not None:
            held.setdefault(place, []).append(fact)
    update: list[Fact] = []
    for place, attribute in enumerate(attributes):
        value = render_value(attribute["value"])
        wanted = value_signature(attribute["value"])
        saved = held.get(place, [Fact(attribute["key"], "")])
        update += [Fact(fact.key, value) for fact in saved if text_signature(fact.value) != wanted]
    return render(update) or NO_CHANGES
