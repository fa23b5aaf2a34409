"""One user's sessions: facts and distractors, in words, with times.

Sessions of a user are days apart; statements follow one another by the second, as in the published rows.
Facts come from `history`, words from `wording`; this module only puts them in order.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

from loratrial.tasks.notes.events import Event
from loratrial.tasks.notes.history import Moment, clock, draw_turn, draw_value
from loratrial.tasks.notes.options import NotesOptions
from loratrial.tasks.notes.wording import (
    DISTRACTOR_KINDS,
    FIRST,
    SECOND,
    DistractorKind,
    Templates,
    say_distractor,
    say_fact,
)
from loratrial.tasks.notes.world import NAME, Attribute, Family, Half, attributes_of

_FIRST_DAY = datetime(2026, 3, 1, 9, tzinfo=UTC)
_LEAST_WAIT = timedelta(seconds=60)


@dataclass(frozen=True)
class Statement:
    """One line of a session, and what it is: the events that it tells, or the kind of distractor."""

    time: str
    text: str
    events: tuple[Event, ...] = ()
    distractor: DistractorKind | None = None


@dataclass(frozen=True)
class Session:
    """Statements in order, and the time at which the notes of the session are taken."""

    start: str
    current_time: str
    statements: tuple[Statement, ...]


@dataclass(frozen=True)
class History:
    """All sessions of one user."""

    name: str
    sessions: tuple[Session, ...]

    def log(self) -> tuple[Event, ...]:
        """Every event, in order."""
        return tuple(
            event for session in self.sessions for said in session.statements for event in said.events
        )


def draw_history(rng: Random, options: NotesOptions, split: str, name: str) -> History:
    """The sessions of one user called `name`, in the words and values that `split` may use."""
    training = split == "train"
    half: Half = "both"
    if "values" in options.disjoint:
        half = "first" if training else "second"
    templates: tuple[Templates, ...] = (FIRST, SECOND)
    if "templates" in options.disjoint:
        templates = (FIRST,) if training else (SECOND,)
    start = _FIRST_DAY + timedelta(days=rng.randrange(28))
    plans = []
    for number in range(options.sessions):
        slots = _slots(rng, options, first_is_fact=number == 0)
        plans.append((start, slots, start + max(_LEAST_WAIT, timedelta(seconds=len(slots)))))
        start += timedelta(days=rng.randint(1, 9))
    current_times = [current for _, _, current in plans]
    log: list[Event] = []
    sessions = []
    for number, (start, slots, current) in enumerate(plans):
        statements = []
        for second, is_fact in enumerate(slots):
            moment = Moment(start + timedelta(seconds=second), start, current_times[number:])
            said = _statement(rng, options, half, rng.choice(templates), name, log, moment, is_fact)
            log += said.events
            statements.append(said)
        sessions.append(Session(clock(start), clock(current), tuple(statements)))
    return History(name, tuple(sessions))


def _slots(rng: Random, options: NotesOptions, first_is_fact: bool) -> list[bool]:
    """Which statements of a session are facts; the share of distractors is right on average."""
    expected = options.statements * options.distractors / (1 - options.distractors)
    n_distractors = int(expected) + (rng.random() < expected % 1)
    slots = [True] * options.statements + [False] * n_distractors
    rng.shuffle(slots)
    if first_is_fact:
        slots.remove(True)
        slots.insert(0, True)
    return slots


def _statement(
    rng: Random,
    options: NotesOptions,
    half: Half,
    templates: Templates,
    name: str,
    log: list[Event],
    moment: Moment,
    is_fact: bool,
) -> Statement:
    time = clock(moment.time)
    turn = None
    if is_fact:
        turn = draw_turn(rng, options.attributes, half, name, options.updates, log, moment)
    if turn is not None:
        return Statement(time, say_fact(rng, templates, turn.attribute, turn.events), turn.events)
    kind: DistractorKind = "chatter" if is_fact else rng.choice(DISTRACTOR_KINDS)
    subject = rng.choice(_subjects(options, kind))
    value = draw_value(rng, subject, half)
    return Statement(time, say_distractor(rng, templates, kind, name, subject, value), distractor=kind)


def _subjects(options: NotesOptions, kind: DistractorKind) -> list[Attribute]:
    """The attributes that a distractor may be about: those of the options where they fit, goods in a shop."""
    fitting: tuple[Family, ...] = ("person", "size", "favorite", "list", "compound")
    if kind == "shop_display":
        fitting = ("favorite", "list")
    families = [family for family in fitting if family in options.attributes] or ["favorite"]
    return [attribute for attribute in attributes_of(families) if attribute != NAME]
