"""Reading notes and merging them: text to facts, facts onto saved facts, saved facts back to text.

What a fact is worth is not decided here. The rules are those of the published notes system; where it is
silent (what ends a line, repeated bullets, a key without letters) the choice is stated at the function.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from loratrial.tasks.notes.values import tokens

MAX_UPDATE_FACTS = 128
MAX_SAVED_FACTS = 256
MAX_CHARACTERS = 200_000

_FORBIDDEN = ("```", "~~~", "{", "[", "<tool_call>")
_BULLETS = ("- ", "* ")


class InvalidNotesError(ValueError):
    """Why a text is not notes, in a few words. It never leaves the task: an invalid output is a reading."""


@dataclass(frozen=True)
class Fact:
    """One line of notes. `key` is None for a value that stands alone."""

    key: str | None
    value: str

    @property
    def line(self) -> str:
        return self.value if self.key is None else f"{self.key}: {self.value}"

    @property
    def identity(self) -> tuple[bool, tuple[str, ...]]:
        """What a later fact must share to replace this one: the token sequence of the key, or, for a value
        that stands alone, of the value. A text without any token is its own identity."""
        text = self.value if self.key is None else self.key
        return self.key is not None, tokens(text) or (text,)


def parse(text: str, limit: int = MAX_UPDATE_FACTS) -> tuple[Fact, ...]:
    """The facts of `text`, one a line, in order; any Unicode line boundary ends a line.

    Raises InvalidNotesError for a forbidden opening, an empty value, more than `limit` facts, or a text of
    more than 200,000 characters.
    """
    if len(text) > MAX_CHARACTERS:
        raise InvalidNotesError(f"more than {MAX_CHARACTERS:,} characters")
    facts: list[Fact] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = _without_bullets(raw)
        if not line or line.casefold().removesuffix(".") == "no changes":
            continue
        if line.startswith(_FORBIDDEN):
            raise InvalidNotesError(f"line {number} opens with {line[:11]!r}")
        fact = _fact(line)
        if not fact.value:
            raise InvalidNotesError(f"line {number} has an empty value")
        facts.append(fact)
        if len(facts) > limit:
            raise InvalidNotesError(f"more than {limit} facts")
    return tuple(facts)


def _without_bullets(line: str) -> str:
    line = line.strip()
    while line.startswith(_BULLETS):
        line = line[2:].lstrip()
    return "" if line in ("-", "*") else line


def _fact(line: str) -> Fact:
    key, colon, value = line.partition(":")
    if colon and key[:1].isalpha():
        return Fact(key.strip(), value.strip())
    return Fact(None, line)


def merge(saved: Sequence[Fact], update: Sequence[Fact]) -> tuple[Fact, ...]:
    """`saved` with `update` laid over it: a fact with the same key takes the place of the saved one, a value
    that stands alone is not added twice, a new fact goes last, and what is not mentioned stays.

    Raises InvalidNotesError when more than 256 facts, or more than 200,000 characters, would be saved.
    """
    facts = {fact.identity: fact for fact in saved}
    for fact in update:
        if fact.key is not None or fact.identity not in facts:
            facts[fact.identity] = fact
    if len(facts) > MAX_SAVED_FACTS:
        raise InvalidNotesError(f"more than {MAX_SAVED_FACTS} saved facts")
    merged = tuple(facts.values())
    if len(render(merged)) > MAX_CHARACTERS:
        raise InvalidNotesError(f"more than {MAX_CHARACTERS:,} characters saved")
    return merged


def render(facts: Sequence[Fact]) -> str:
    """The saved notes as text, one fact a line; empty when there is none."""
    return "\n".join(fact.line for fact in facts)
