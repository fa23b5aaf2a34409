"""The truth about one user as a log of events, and what stands at a given time: a pure replay.

A label is therefore a proof: anybody can replay the log. How events are drawn and worded is elsewhere.
Times are UTC texts of one width (`2026-03-01T09:00:00Z`), whose order as text is their order in time.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from loratrial.tasks.notes.values import value_signature
from loratrial.tasks.task import Json

Kind = Literal["state", "correct", "retract", "set_temporarily", "expire", "complete", "cancel", "repeat"]
"""`expire` is never said: the clock does it, when a temporary value ends or a deadline has passed."""

ACTIVE, EXPIRED, COMPLETED, CANCELLED = "active", "expired", "completed", "cancelled"
_CLOSED: dict[Kind, str] = {"complete": COMPLETED, "cancel": CANCELLED}


@dataclass(frozen=True)
class Event:
    """One thing that became true when it was said.

    `until` is the exclusive end of a temporary value. `deadline_in` names the attribute that holds the
    deadline of a purchase intent; it stands on the event that states the intent's status.
    """

    kind: Kind
    time: str
    attribute: str
    value: Json = None
    until: str | None = None
    deadline_in: str | None = None


@dataclass(frozen=True)
class Standing:
    """What holds for one attribute: its value, the kind of event that set it, and the values that stood
    before and do not hold now."""

    attribute: str
    value: Json
    kind: Kind
    earlier: tuple[Json, ...] = ()


def replay(events: Iterable[Event], now: str) -> tuple[Standing, ...]:
    """What stands at `now` by the events up to and including `now`, in the order of first mention.

    A correction or retraction wins over everything before it, a temporary value included. A temporary value
    holds while `now` is before its end, then the value beneath it returns. An active intent is `expired`
    strictly after its deadline. A repetition changes nothing. A retracted value is unknown (None), because
    notes can replace a fact but not delete one.
    """
    logs: dict[str, list[Event]] = {}
    for event in events:
        if event.time <= now:
            logs.setdefault(event.attribute, []).append(event)
    standings = {name: _stand(name, log, now) for name, log in logs.items()}
    return tuple(_with_deadline(standings[name], logs[name], standings, now) for name in logs)


def _stand(attribute: str, log: list[Event], now: str) -> Standing:
    value: Json = None
    kind: Kind = "state"
    temporary: Event | None = None
    said: list[Json] = []
    for event in log:
        if event.kind == "repeat":
            continue
        if event.kind == "set_temporarily":
            temporary = event
            said.append(event.value)
            continue
        value, kind = _CLOSED.get(event.kind, event.value), event.kind
        temporary = None
        said.append(value)
    if temporary is not None and temporary.until is not None:
        if now < temporary.until:
            value, kind = temporary.value, "set_temporarily"
        else:
            kind = "expire"
    return Standing(attribute, value, kind, _earlier(said, value))


def _with_deadline(
    standing: Standing, log: list[Event], standings: dict[str, Standing], now: str
) -> Standing:
    named = next((event.deadline_in for event in log if event.deadline_in is not None), None)
    deadline = standings.get(named) if named is not None else None
    if standing.value != ACTIVE or deadline is None or deadline.value is None or now <= deadline.value:
        return standing
    return Standing(standing.attribute, EXPIRED, "expire", _earlier([*standing.earlier, ACTIVE], EXPIRED))


def _earlier(said: Iterable[Json], value: Json) -> tuple[Json, ...]:
    """The values of `said` that differ from `value` and from one another, in order."""
    said = list(said)
    if said == [value]:
        return ()
    kept: dict[str, Json] = {value_signature(old): old for old in said}
    kept.pop(value_signature(value), None)
    return tuple(kept.values())
