"""Prompts in two layouts. Only an item and the carried notes come in, so no label can come out.

`stable`: the history first and what changes last, so that the prompt of a session extends that of the session
before (a shared prefix is computed once); sessions carry their time in a heading and statements stand behind
a dash. `published`: the user prompt of the published rows, character for character. The instructions are our
own in both.
"""

from collections.abc import Mapping
from typing import Literal

from loratrial.tasks.task import Item, Json, Message, State

Layout = Literal["stable", "published"]
Instructions = Literal["brief", "full"]

NO_NOTES = "(none)"

_BRIEF = """\
Keep notes about one user. Write only facts about the user that are new or changed since the saved \
notes, one per line, as `key: value`. To change a fact, reuse its key; other notes stay. Copy values \
as said, without words between their parts; keep a list whole, on one line. Write `unknown` for what \
the user calls unknown and `no preference` for what they do not care about. At Current time, \
temporary values that have ended give way to the earlier value, and active intents past their \
deadline are expired. Ignore other people, adverts, imagined things and chatter. If nothing changed, \
write only: No changes."""

_FULL = """\
You keep notes about one user. You see every session so far in order, the current time, and the \
notes that you saved before.
Answer with text only: one fact per line, a short key that says what the fact is about, a colon, and \
the value. No JSON, no code fences, no explanations.
Write only facts that are new or that changed since the saved notes. A line with the key of a saved \
fact replaces that fact; everything that you do not mention is kept. So reuse a key exactly when its \
fact changes, and use different keys for different things: the size of a hat is not the size of a \
shoe.
Copy names, numbers, units and dates as they were said. Give a list complete, on one line, separated \
by commas; write other values of several parts in the same way, without the words between the parts. \
Write status and deadline of a purchase intent as two facts.
Write `unknown` when the user says that something is unknown or withdraws it, and `no preference` \
when the user says that they have none.
Only the user's own facts count. Other people, people with a similar name, shops and adverts, \
quotations, imagined situations and small talk say nothing about the user. Do not guess.
The latest correction wins. A temporary value holds until the moment at which it ends; from that \
moment on the value before it is true again. An active purchase intent is expired once the current \
time is later than its deadline, unless it was completed or cancelled.
If nothing is new and nothing changed, write only: No changes."""

INSTRUCTIONS: Mapping[Instructions, str] = {"brief": _BRIEF, "full": _FULL}


def messages(item: Item, state: State, layout: Layout, instructions: Instructions) -> tuple[Message, ...]:
    """The system message (instructions) and the user message (sessions, current time, notes) of one item."""
    user = _published(item.public, state) if layout == "published" else _stable(item.public, state)
    return Message("system", INSTRUCTIONS[instructions]), Message("user", user)


def history_text(public: Mapping[str, Json]) -> str:
    """The sessions in the stable layout: the text that the prompt of the next session extends."""
    blocks = []
    for number, session in enumerate(public["sessions"], start=1):
        lines = "".join(f"- {said['text']}\n" for said in session["statements"])
        blocks.append(f"Session {number}, {_minutes(session['start'])}:\n{lines}\n")
    return "".join(blocks)


def _stable(public: Mapping[str, Json], state: State) -> str:
    notes = state or NO_NOTES
    return f"{history_text(public)}Current time: {public['current_time']}\nSaved notes:\n{notes}"


def _published(public: Mapping[str, Json], state: State) -> str:
    blocks = [f"Current time: {public['current_time']}"]
    for number, session in enumerate(public["sessions"], start=1):
        lines = [f"[{said['time']}] {said['text']}" for said in session["statements"]]
        blocks.append("\n".join([f"Session {number}:", *lines]))
    blocks.append(f"Previous saved notes:\n{state or NO_NOTES}")
    return "\n\n".join(blocks)


def _minutes(time: str) -> str:
    return f"{time[:10]} {time[11:16]}"
