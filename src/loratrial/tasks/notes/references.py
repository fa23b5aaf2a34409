"""Policies with no model. Scored with every trial, they show what a reward gives away for nothing.

Only the oracle looks at the target.
"""

import re
from collections.abc import Mapping, Sequence

from loratrial.tasks.notes.gold import NO_CHANGES, gold_update
from loratrial.tasks.notes.notes import MAX_SAVED_FACTS, MAX_UPDATE_FACTS, Fact, parse, render
from loratrial.tasks.task import Item, Json, Reference, State, Target

_VERB = re.compile(r"^(.*)(?: is | are |: )(.+)$")


def empty(item: Item, state: State, target: Target) -> str:
    """Never writes a note."""
    return NO_CHANGES


def copy_statements(item: Item, state: State, target: Target) -> str:
    """Copies every statement of every session that has the form of a fact, whoever it is about: what stands
    before the last `is`, `are` or colon is the key, the rest of the sentence the value."""
    return _copied(item.public["sessions"], state)


def copy_last_session(item: Item, state: State, target: Target) -> str:
    """The same, for the statements of the current session only."""
    return _copied(item.public["sessions"][-1:], state)


def echo_notes(item: Item, state: State, target: Target) -> str:
    """Writes the saved notes again, and so never learns anything."""
    return state or NO_CHANGES


def oracle(item: Item, state: State, target: Target) -> str:
    """Knows the target: the upper end of every figure."""
    return gold_update(target.private, state)


REFERENCES: Mapping[str, Reference] = {
    "empty": empty,
    "copy_statements": copy_statements,
    "copy_last_session": copy_last_session,
    "echo_notes": echo_notes,
    "oracle": oracle,
}


def _copied(sessions: Sequence[Mapping[str, Json]], state: State) -> str:
    """The facts as text: the latest 128, which is what one update may hold, and no new ones once 256 are
    saved, so that the policy is judged by what it says and not by the limits."""
    facts = [fact for session in sessions for said in session["statements"] for fact in _facts(said["text"])]
    known = {fact.identity for fact in parse(state, MAX_SAVED_FACTS)}
    kept = []
    for fact in facts[-MAX_UPDATE_FACTS:]:
        if fact.identity in known or len(known) < MAX_SAVED_FACTS:
            known.add(fact.identity)
            kept.append(fact)
    return render(kept) or NO_CHANGES


def _facts(text: str) -> list[Fact]:
    facts = []
    for sentence in re.split(r"[.;]\s+", text.rstrip(".\"'")):
        found = _VERB.match(sentence)
        if found:
            facts.append(Fact(found[1].replace(":", ","), found[2]))
    return facts
