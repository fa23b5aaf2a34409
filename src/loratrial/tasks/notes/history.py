"""Drawing what a user says next: which event, about which attribute, with which value.

Everything is drawn from the caller's generator, so a history is a function of its seed. Wording, distractors
and sessions are put around it in `sessions`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from loratrial.tasks.notes.events import ACTIVE, Event, Kind, Standing, replay
from loratrial.tasks.notes.values import value_signature
from loratrial.tasks.notes.world import NAME, Attribute, Family, Half, attributes_of, vocabulary
from loratrial.tasks.task import Json

_UPDATE_WEIGHTS: dict[Kind, int] = {
    "correct": 5,
    "retract": 1,
    "set_temporarily": 3,
    "complete": 2,
    "cancel": 2,
    "repeat": 2,
}
_COLLISION_SHARE = 0.25
_NOTHING_SHARE = 0.08
_BOUNDARY_SHARE = 0.3
_TIME = "%Y-%m-%dT%H:%M:%SZ"


def clock(moment: datetime) -> str:
    """A UTC time as the text that events and prompts use."""
    return moment.strftime(_TIME)


@dataclass(frozen=True)
class Turn:
    """What one statement tells: one attribute (or intent) and its events."""

    attribute: Attribute
    events: tuple[Event, ...]


@dataclass(frozen=True)
class Moment:
    """When a statement is made: its time, the start of its session, and the current times of this session and
    of those to come."""

    time: datetime
    session_start: datetime
    current_times: Sequence[datetime]


def draw_turn(
    rng: Random,
    families: Sequence[Family],
    half: Half,
    name: str,
    updates: float,
    log: Sequence[Event],
    moment: Moment,
) -> Turn | None:
    """The next fact of the user called `name`, given all said so far; None when nothing is left to say.

    A new fact, or with probability `updates` (after the first session) an update of an earlier one; when one
    of the two is not possible, the other.
    """
    pool = attributes_of(families)
    standing = {fact.attribute: fact for fact in replay(log, clock(moment.time))}
    known = [attribute for attribute in pool if _facts_of(attribute)[0] in standing]
    fresh = [attribute for attribute in pool if _facts_of(attribute)[0] not in standing]
    if not log and NAME in fresh:
        return _state(rng, NAME, half, name, standing, moment)
    possible = _possible_updates(known, "temporary" in families, log, standing, moment)
    earlier = bool(log) and log[0].time < clock(moment.session_start)
    if possible and (not fresh or (earlier and rng.random() < updates)):
        kinds = [kind for kind in _UPDATE_WEIGHTS if any(kind == other for other, _ in possible)]
        kind = rng.choices(kinds, [_UPDATE_WEIGHTS[kind] for kind in kinds])[0]
        attribute = rng.choice([attribute for other, attribute in possible if other == kind])
        return _update(rng, kind, attribute, half, standing, moment)
    if not fresh:
        return None
    family = rng.choice(sorted({attribute.family for attribute in fresh}))
    attribute = rng.choice([attribute for attribute in fresh if attribute.family == family])
    return _state(rng, attribute, half, name, standing, moment)


def draw_value(rng: Random, attribute: Attribute, half: Half) -> Json:
    """A value of an attribute that is no intent, from its half of the vocabulary."""
    if attribute.shape == "compound":
        return {part: rng.choice(vocabulary(words, half)) for part, words in attribute.parts}
    words = list(vocabulary(attribute.vocabulary, half))
    if attribute.shape == "atom":
        return rng.choice(words)
    rng.shuffle(words)
    return words[: rng.choice((2, 2, 3))]


def _facts_of(attribute: Attribute) -> tuple[str, ...]:
    """The names of the facts that an attribute stands for: itself, or status and deadline of an intent."""
    if attribute.shape == "intent":
        return f"intent status {attribute.key}", f"intent deadline {attribute.key}"
    return (attribute.key,)


def _possible_updates(
    known: Sequence[Attribute],
    temporaries: bool,
    log: Sequence[Event],
    standing: dict[str, Standing],
    moment: Moment,
) -> list[tuple[Kind, Attribute]]:
    now = clock(moment.time)
    busy = {event.attribute for event in log if event.until is not None and now < event.until}
    possible: list[tuple[Kind, Attribute]] = []
    for attribute in known:
        fact = _facts_of(attribute)[0]
        if fact in busy:
            continue
        if attribute.shape == "intent":
            if standing[fact].value == ACTIVE:
                possible += [(kind, attribute) for kind in ("correct", "complete", "cancel", "repeat")]
            continue
        possible.append(("repeat", attribute))
        if attribute.fixed:
            continue
        possible.append(("correct", attribute))
        if standing[fact].value is not None:
            possible.append(("retract", attribute))
            if temporaries and attribute.shape != "compound":
                possible.append(("set_temporarily", attribute))
    return possible


def _state(
    rng: Random,
    attribute: Attribute,
    half: Half,
    name: str,
    standing: dict[str, Standing],
    moment: Moment,
) -> Turn:
    now = clock(moment.time)
    if attribute.shape == "intent":
        status, deadline = _facts_of(attribute)
        return Turn(
            attribute,
            (
                Event("state", now, status, ACTIVE, deadline_in=deadline),
                Event("state", now, deadline, _later(rng, moment)),
            ),
        )
    if attribute == NAME:
        return Turn(attribute, (Event("state", now, attribute.key, name),))
    if rng.random() < _NOTHING_SHARE and attribute.family in ("size", "favorite", "list"):
        value: Json = None if attribute.family == "size" else []
    else:
        value = _colliding_value(rng, attribute, half, standing)
    return Turn(attribute, (Event("state", now, attribute.key, value),))


def _update(
    rng: Random, kind: Kind, attribute: Attribute, half: Half, standing: dict[str, Standing], moment: Moment
) -> Turn:
    now = clock(moment.time)
    facts = _facts_of(attribute)
    if attribute.shape == "intent":
        status, deadline = facts
        if kind == "correct":
            moved = standing[deadline].value
            while moved == standing[deadline].value:
                moved = _later(rng, moment)
            return Turn(attribute, (Event("correct", now, deadline, moved),))
        if kind == "repeat":
            return Turn(attribute, tuple(Event("repeat", now, fact, standing[fact].value) for fact in facts))
        return Turn(attribute, (Event(kind, now, status),))
    fact = facts[0]
    old = standing[fact].value
    if kind == "repeat":
        return Turn(attribute, (Event("repeat", now, fact, old),))
    if kind == "retract":
        return Turn(attribute, (Event("retract", now, fact),))
    value = _colliding_value(rng, attribute, half, standing)
    while value_signature(value) == value_signature(old):
        value = draw_value(rng, attribute, half)
    if kind == "set_temporarily":
        if attribute.family in ("favorite", "list") and old != [] and rng.random() < _COLLISION_SHARE:
            value = []
        return Turn(attribute, (Event(kind, now, fact, value, until=_later(rng, moment)),))
    return Turn(attribute, (Event(kind, now, fact, value),))


def _colliding_value(rng: Random, attribute: Attribute, half: Half, standing: dict[str, Standing]) -> Json:
    """A value that, in a quarter of the cases, another attribute of the same vocabulary already has."""
    same = [
        standing[other.key].value
        for other in attributes_of((attribute.family,))
        if other.key in standing
        and other != attribute
        and (other.vocabulary, other.parts) == (attribute.vocabulary, attribute.parts)
        and standing[other.key].value
    ]
    if same and rng.random() < _COLLISION_SHARE:
        return rng.choice(same)
    return draw_value(rng, attribute, half)


def _later(rng: Random, moment: Moment) -> str:
    """A time after this session's current time, at which a deadline or a temporary value may end: near one of
    the next two sessions, often at its current time to the second, or long after."""
    now, ahead = moment.current_times[0], moment.current_times[1:3]
    if not ahead or rng.random() < 0.2:
        return clock(now + timedelta(days=rng.choice((3, 30, 60))))
    end = rng.choice(ahead)
    if rng.random() < _BOUNDARY_SHARE:
        return clock(end)
    # Sessions are at least a day apart, so this stays after `now`.
    return clock(end - timedelta(hours=rng.choice((2, 7, 15))))
