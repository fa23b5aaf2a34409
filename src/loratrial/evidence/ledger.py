"""The ledger: the append-only record of every candidate ever sampled, one line of canonical JSON each.

A group (all candidates of one item) is one write and one fsync, so that a crash tears the last group or none.
A ledger holds no time, host or path: the same seed makes the same bytes. What a line means, and whether
it is true, is for the recount to say; here stands only its form.
"""

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np

from loratrial.errors import RunFolderError
from loratrial.evidence.jsonio import canonical, parse, sha256_text
from loratrial.tasks.choosing import MODES, Mode
from loratrial.tasks.task import Message, Reading, Score

Finish = Literal["stop", "length", "refused"]
FINISHES: tuple[Finish, ...] = ("stop", "length", "refused")


@dataclass(frozen=True)
class CandidateRecord:
    """One candidate as it was sampled, read and scored."""

    walk: str
    """The pass it belongs to: `eval-7319`, `train-0`."""
    arm: str
    group: int
    """Ordinal of its group within the file, from 0."""
    stream: str
    item: int
    """The item's index within its stream."""
    candidate: int
    n_candidates: int
    seed: int
    """Of its own generator, from `seeds.candidate_seed`."""
    policy_version: int
    """Updates that the policy had received when it sampled this."""
    messages_sha256: str
    """From `messages_sha256`."""
    prompt_ids_sha256: str
    """From `ids_sha256`."""
    n_prompt_tokens: int
    mode: Mode
    """How the answer was asked for."""
    rotation: int
    """By how many places the labels were moved on for it."""
    token_ids: tuple[int, ...]
    """What the sampler drew, (R,): free text, the id that ended it, the label where one was chosen."""
    supplied_ids: tuple[int, ...]
    """What was supplied before the label; empty for plain text."""
    n_reasoning: int
    """Tokens of the free text, the id that ended it left out: what a token price charges for."""
    text: str
    """Derived from `token_ids`, never the reverse."""
    finish: Finish
    logprobs: tuple[float, ...]
    """Of the distribution sampled from, (R,); written as the shortest decimals that name the same float32."""
    reading: Reading
    score: Score
    """The reward in it is raw."""
    price: float | None
    """Of one reasoning token, in the training of an arm that has a token price."""
    priced_reward: float | None
    """Raw reward less price x reasoning tokens, where there is a price."""
    carried: bool
    """Whether the stream goes on from this candidate: candidate 0, whatever its reward."""

    def to_json(self) -> str:
        """One line without its newline; raises ValueError for NaN and infinities."""
        value = {each.name: getattr(self, each.name) for each in fields(self)}
        value["token_ids"] = list(self.token_ids)
        value["supplied_ids"] = list(self.supplied_ids)
        value["logprobs"] = [_shortest_float32(number) for number in self.logprobs]
        value["reading"] = reading_json(self.reading)
        value["score"] = score_json(self.score)
        return canonical(value)

    @classmethod
    def from_json(cls, line: str | bytes) -> Self:
        """The record of one line; raises ValueError saying which field is wrong."""
        value = _object(parse(line), _RECORD_FIELDS, "record")
        if value["finish"] not in FINISHES:
            raise ValueError(f"finish is {value['finish']!r}, not one of {', '.join(FINISHES)}")
        if value["mode"] not in MODES:
            raise ValueError(f"mode is {value['mode']!r}, not one of {', '.join(MODES)}")
        token_ids = _all_of(value["token_ids"], (int,), "token_ids")
        value["supplied_ids"] = _all_of(value["supplied_ids"], (int,), "supplied_ids")
        logprobs = _all_of(value["logprobs"], (int, float), "logprobs")
        value["token_ids"] = token_ids
        value["logprobs"] = tuple(float(number) for number in logprobs)
        value["reading"] = Reading(**_object(value["reading"], _READING_FIELDS, "reading"))
        value["score"] = Score(**_object(value["score"], _SCORE_FIELDS, "score"))
        _all_of(list(value["score"].figures.values()), (int, float), "figures")
        return cls(**value)


_Types = tuple[type, ...]
_RECORD_FIELDS: dict[str, _Types] = {
    **dict.fromkeys(
        ("walk", "arm", "stream", "messages_sha256", "prompt_ids_sha256", "mode", "text", "finish"), (str,)
    ),
    **dict.fromkeys(
        ("group", "item", "candidate", "n_candidates", "seed", "policy_version", "n_prompt_tokens"), (int,)
    ),
    **dict.fromkeys(("rotation", "n_reasoning"), (int,)),
    **dict.fromkeys(("token_ids", "supplied_ids", "logprobs"), (list,)),
    **dict.fromkeys(("price", "priced_reward"), (int, float, type(None))),
    **dict.fromkeys(("reading", "score"), (dict,)),
    "carried": (bool,),
}
_READING_FIELDS: dict[str, _Types] = {
    "valid": (bool,),
    "problem": (str,),
    "facts": (object,),
    "state": (str,),
}
_SCORE_FIELDS: dict[str, _Types] = {"reward": (int, float), "figures": (dict,), "detail": (dict,)}


def reading_json(reading: Reading) -> dict[str, Any]:
    """A reading as the ledger writes it."""
    return {
        "valid": reading.valid,
        "problem": reading.problem,
        "facts": reading.facts,
        "state": reading.state,
    }


def score_json(score: Score) -> dict[str, Any]:
    """A score as the ledger writes it."""
    return {"reward": score.reward, "figures": dict(score.figures), "detail": dict(score.detail)}


def messages_sha256(messages: Sequence[Message]) -> str:
    """The hash of a prompt before any tokenizer: of `[{"content": ..., "role": ...}, ...]`."""
    return sha256_text([{"role": message.role, "content": message.content} for message in messages])


def ids_sha256(token_ids: Sequence[int]) -> str:
    """The hash of a prompt as the policy saw it, (P,)."""
    return sha256_text([int(token) for token in token_ids])


class LedgerWriter:
    """Appends whole groups to one ledger.

    Opening an existing file cuts off a torn or incomplete last group; `n_groups` complete ones stand.
    Raises RunFolderError, with file and line, when anything before the tail is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ends = [end for _, end in _whole_groups(path)] if path.exists() else []
        existed = path.exists()
        self._file = path.open("ab")
        if existed:
            self.truncate(self.n_groups)
        else:
            _fsync_folder(path.parent)

    @property
    def n_groups(self) -> int:
        """Complete groups in the file."""
        return len(self._ends)

    def append_group(self, records: Sequence[CandidateRecord]) -> None:
        """Put one group on disk, flushed and fsynced, before anything acts on it.

        Raises ValueError when the records are not the next group in order, or hold what JSON cannot.
        """
        problem = _group_problem(records, self.n_groups)
        if problem:
            raise ValueError(f"{self.path}: {problem}")
        data = b"".join(record.to_json().encode() + b"\n" for record in records)
        self._file.write(data)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._ends.append((self._ends[-1] if self._ends else 0) + len(data))

    def truncate(self, n_groups: int) -> None:
        """Forget the groups from `n_groups` on: what a resumed walk does with those that it samples again."""
        if n_groups > self.n_groups:
            raise ValueError(f"{self.path} holds {self.n_groups} groups, not {n_groups}")
        del self._ends[n_groups:]
        self._file.truncate(self._ends[-1] if self._ends else 0)
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_groups(path: Path) -> Iterator[list[CandidateRecord]]:
    """The groups of a ledger in order, one in memory at a time.

    Raises RunFolderError, with file and line, at the first line that is damaged, out of order or incomplete.
    """
    if not path.exists():
        raise RunFolderError(f"{path} is missing; loratrial resume the run")
    line = 1
    whole = 0
    for group, end in _whole_groups(path):
        line += len(group)
        whole = end
        yield group
    if path.stat().st_size > whole:
        raise RunFolderError(f"{path}:{line}: the last group is torn or incomplete; loratrial resume the run")


def _whole_groups(path: Path) -> Iterator[tuple[list[CandidateRecord], int]]:
    """Every complete group with the byte offset behind it; a torn or incomplete tail ends quietly.

    A tail is torn when its last line has no newline: a group is one write, so a crash leaves a prefix.
    """
    group: list[CandidateRecord] = []
    n_groups = 0
    end = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            end += len(line)
            if not line.endswith(b"\n"):
                return
            try:
                record = CandidateRecord.from_json(line)
            except ValueError as error:
                raise RunFolderError(f"{path}:{number}: not a ledger line: {error}") from None
            group.append(record)
            if problem := _line_problem(group, n_groups):
                raise RunFolderError(f"{path}:{number}: {problem}")
            if len(group) == record.n_candidates:
                yield group, end
                group = []
                n_groups += 1


def _line_problem(group: Sequence[CandidateRecord], ordinal: int) -> str:
    """What is out of order in the last record of a group that is still growing, or nothing."""
    first, last = group[0], group[-1]
    if last.group != ordinal:
        return f"group {last.group} where group {ordinal} belongs"
    if last.candidate != len(group) - 1 or last.candidate >= last.n_candidates:
        return f"candidate {last.candidate} of {last.n_candidates} where candidate {len(group) - 1} belongs"
    for name in ("n_candidates", "walk", "arm", "stream", "item"):
        if getattr(last, name) != getattr(first, name):
            return f"{name} {getattr(last, name)!r} in a group of {name} {getattr(first, name)!r}"
    return ""


def _group_problem(group: Sequence[CandidateRecord], ordinal: int) -> str:
    """Why `group` may not be appended as group `ordinal`, or nothing."""
    if not group or len(group) != group[0].n_candidates:
        return f"{len(group)} records are no whole group"
    for n_records in range(1, len(group) + 1):
        if problem := _line_problem(group[:n_records], ordinal):
            return problem
    for record in group:
        if len(record.logprobs) != len(record.token_ids):
            return f"{len(record.logprobs)} log-probabilities for {len(record.token_ids)} tokens"
    return ""


def _shortest_float32(number: float) -> float:
    """The double whose shortest decimal is the shortest decimal of the float32 nearest to `number`."""
    with np.errstate(over="ignore"):
        rounded = np.float32(number)
    if not math.isfinite(rounded):
        raise ValueError(f"log-probability {number!r} is no finite float32")
    return float(str(rounded))


def _object(value: Any, types: dict[str, _Types], what: str) -> dict[str, Any]:
    """`value` as a new dict when it is an object of exactly these fields and types; raises ValueError."""
    if not isinstance(value, dict):
        raise ValueError(f"{what} is no object")
    if wrong := sorted(value.keys() ^ types.keys()):
        raise ValueError(f"{what} has {'no' if wrong[0] in types else 'an unknown'} field {wrong[0]!r}")
    for name, kinds in types.items():
        if not _is(value[name], kinds):
            raise ValueError(f"{what} field {name!r} is {type(value[name]).__name__}")
    return dict(value)


def _all_of(values: list[Any], types: _Types, what: str) -> tuple[Any, ...]:
    """`values` as a tuple when each is one of `types`; raises ValueError."""
    for value in values:
        if not _is(value, types):
            raise ValueError(f"{what} holds {type(value).__name__}")
    return tuple(values)


def _is(value: Any, types: _Types) -> bool:
    """Whether `value` is one of `types`, where a bool is no number."""
    return isinstance(value, types) and (not isinstance(value, bool) or bool in types or object in types)


def _fsync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
