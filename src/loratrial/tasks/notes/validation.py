"""Whether a dataset is one of notes, and proof of the grader on it: only right answers score exact."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from loratrial.errors import DataError
from loratrial.tasks.notes.gold import canonical_notes
from loratrial.tasks.notes.notes import parse
from loratrial.tasks.notes.values import text_signature
from loratrial.tasks.task import Dataset, Item, Json, Score, State, Target, Task

_INVALID = '{"name": "json is not notes"}'
_INVENTED = "shoe size of the lighthouse keeper: 1234"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Statement(_Strict):
    time: str
    text: str


class _Session(_Strict):
    start: str
    statements: list[_Statement]


class _Public(_Strict):
    current_time: str
    sessions: list[_Session]


class _Attribute(_Strict):
    key: str
    value: JsonValue
    kind: str
    stale: list[JsonValue]


class _Private(_Strict):
    current_time: str
    attributes: list[_Attribute]
    signatures: list[str]
    profile_sha256: str


def check_shape(dataset: Dataset) -> None:
    """Refuse a dataset of another task: raises DataError naming the first item that does not have the fields
    of a notes item and its label. An item with a field too many is refused as well: it could show a label."""
    for stream in dataset.streams:
        for item in stream.items:
            _check(_Public, item.public, f"item {item.index} of stream {stream.id!r}")
            target = dataset.targets.get((stream.id, item.index))
            if target is None:
                raise DataError(f"item {item.index} of stream {stream.id!r} has no target: add one")
            _check(_Private, target.private, f"the target of item {item.index} of stream {stream.id!r}")


def _check(model: type[BaseModel], value: Mapping[str, Json], where: str) -> None:
    try:
        model.model_validate(dict(value))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise DataError(
            f"{where}: {field}: {first['msg']}: this is not a dataset of the notes task"
        ) from None


def validate(task: Task) -> None:
    """Check every item of the task, carrying gold notes along each stream.

    Gold updates and canonical notes must score exact by values and by attributes. An empty answer to empty
    notes, an invalid answer, an invented fact, a withheld fact and two exchanged values must not. Raises
    DataError naming the first item and check that fails.
    """
    for stream in task.dataset.streams:
        state: State = ""
        for item in stream.items:
            target = task.dataset.target(item)
            state = _check_item(task, item, state, target)


def _check_item(task: Task, item: Item, state: State, target: Target) -> State:
    carried = task.read(item, task.gold(item, state, target), state)
    canonical = canonical_notes(target.private)
    lines = canonical.split("\n")

    def judged(text: str) -> Score:
        return task.score(target, task.read(item, text, ""))

    def demand(holds: bool, what: str) -> None:
        if not holds:
            raise DataError(
                f"item {item.index} of stream {item.stream!r}: {what}: repair or remove this item"
            )

    demand(_exact(task.score(target, carried)), "the gold update does not score exact")
    demand(_exact(judged(canonical)), "the canonical notes do not score exact")
    demand(judged(_INVALID).reward == 0, "an invalid output is rewarded")
    demand(task.read(item, _INVALID, state).state == state, "an invalid output changes the notes")
    demand(judged("No changes.").reward == 0, "an empty answer is rewarded")
    demand(not _exact(judged(f"{canonical}\n{_INVENTED}")), "an invented fact goes unnoticed")
    demand(not _exact(judged("\n".join(lines[1:]))), "a withheld fact goes unnoticed")
    exchanged = _exchange(canonical)
    if exchanged is not None:
        demand(judged(exchanged).figures["exact_state"] == 0, "exchanged values go unnoticed")
    return carried.state


def _exact(score: Score) -> bool:
    return score.figures["exact"] == 1 and score.figures["exact_state"] == 1


def _exchange(canonical: str) -> str | None:
    """The canonical notes with the first two different values exchanged; None when all are alike."""
    facts = list(parse(canonical))
    for place, fact in enumerate(facts[1:], start=1):
        if text_signature(fact.value) != text_signature(facts[0].value):
            return "\n".join(
                [
                    f"{facts[0].key}: {fact.value}",
                    f"{fact.key}: {facts[0].value}",
                    *(other.line for other in facts[1:place] + facts[place + 1 :]),
                ]
            )
    return None
