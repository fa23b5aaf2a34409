"""The recount of one ledger: its order, and every line of it, from the trial and the data.

Left out: learning, which `recount_training.py` recounts, and figures, which are built from what is returned.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from loratrial.errors import RunFolderError, ScorerError
from loratrial.evidence.figures import GroupSummary, summarize
from loratrial.evidence.findings import Findings
from loratrial.evidence.jsonio import canonical
from loratrial.evidence.judge import carried_state, judge
from loratrial.evidence.ledger import (
    CandidateRecord,
    messages_sha256,
    read_groups,
    reading_json,
    score_json,
)
from loratrial.evidence.opened import OpenedRun, Place
from loratrial.seeds import candidate_seed
from loratrial.tasks.choosing import Mode, is_choice_task, rotation_of, shown, supplied_text


@dataclass(frozen=True)
class Sampled:
    """How the groups of a ledger have to have been sampled."""

    n_candidates: int
    mode: Mode
    max_completion_tokens: int


@dataclass(frozen=True)
class Recounted:
    """One group after its recount."""

    line: int
    policy_version: int
    summary: GroupSummary
    """Of the derived scores."""


def recount_ledger(
    run: OpenedRun,
    arm: str,
    path: Path,
    places: Iterator[Place],
    sampled: Sampled,
    findings: Findings,
    *,
    may_end_early: bool = False,
) -> list[Recounted]:
    """The groups of one ledger, each compared with the place where it belongs; ends where order is lost.

    With `may_end_early` the ledger may stop before the places do. Prices, which hang on what was learned
    before, are for `recount_training.py`.
    """
    findings.checked["ledgers"] += 1
    state: dict[tuple[str, str], str] = {}
    found: list[Recounted] = []
    line = 1
    problem = ""
    try:
        for group in read_groups(path):
            place = next(places, None)
            if problem := _misplaced(group[0], arm, place, sampled.n_candidates):
                break
            assert place is not None
            key = place.walk, place.stream.id
            before = "" if place.first else state[key]
            derived = _recount_group(run, group, place, before, sampled, path, line, findings)
            state[key] = carried_state([record.reading for record in derived], before)
            found.append(Recounted(line, group[0].policy_version, summarize(derived)))
            line += len(group)
        else:
            missing = None if may_end_early else next(places, None)
            if missing is not None:
                what = f"{missing.walk} of stream {missing.stream.id!r} item {missing.item.index}"
                problem = f"the ledger ends before {what}"
    except ScorerError as error:
        problem = str(error)
    except RunFolderError as error:
        findings.add_error(path, error)
        findings.lost = True
    if problem:
        findings.add(path, line, f"{problem}; the rest of this file was not recounted")
        findings.lost = True
    return found


def _misplaced(record: CandidateRecord, arm: str, place: Place | None, n_candidates: int) -> str:
    """Why this group does not belong at `place`, or nothing."""
    if place is None:
        return "a group after the end of the walk"
    for name, expected in (
        ("arm", arm),
        ("walk", place.walk),
        ("stream", place.stream.id),
        ("item", place.item.index),
        ("n_candidates", n_candidates),
    ):
        if getattr(record, name) != expected:
            return f"{name} {getattr(record, name)!r} where {expected!r} belongs"
    return ""


def _recount_group(
    run: OpenedRun,
    group: Sequence[CandidateRecord],
    place: Place,
    state: str,
    sampled: Sampled,
    path: Path,
    line: int,
    findings: Findings,
) -> list[CandidateRecord]:
    """The group with readings and scores derived again; what the ledger says otherwise goes to `findings`."""
    derived = []
    first_of: dict[int, CandidateRecord] = {}
    for offset, record in enumerate(group):
        rotation = rotation_of(run.task, run.spec.sampling.rotate_labels, record.candidate)
        item = shown(run.task, place.item, sampled.mode, rotation)
        first = first_of.setdefault(rotation, record)
        expected = {
            "mode": sampled.mode,
            "rotation": rotation,
            "n_reasoning": _n_reasoning(record),
            "supplied_ids": [] if sampled.mode == "text" else list(group[0].supplied_ids),
            "seed": candidate_seed(
                run.spec.trial.seed, place.walk, place.stream.id, place.item.index, record.candidate
            ),
            "messages_sha256": messages_sha256(run.task.messages(item, state)),
            "carried": record.candidate == 0,
            "prompt_ids_sha256": first.prompt_ids_sha256,
            "n_prompt_tokens": first.n_prompt_tokens,
            "policy_version": group[0].policy_version,
        }
        reading, score = judge(run.task, item, record.text, record.finish, state)
        true = replace(record, reading=reading, score=score, n_reasoning=_n_reasoning(record))
        derived.append(true)
        for what in chain(
            _named_differences({name: _plain(getattr(record, name)) for name in expected}, expected),
            _form_differences(record, run, sampled),
            _named_differences(reading_json(record.reading), reading_json(reading), "reading."),
            _named_differences(_flat_score(record), _flat_score(true), "score."),
        ):
            findings.add(path, line + offset, what)
        findings.checked["candidates"] += 1
        findings.checked["tokens"] += len(record.token_ids)
    findings.checked["groups"] += 1
    return derived


def _n_reasoning(record: CandidateRecord) -> int:
    """The drawn tokens without the label, where there is one, and without what ended the free text."""
    n_free = len(record.token_ids) - (record.mode != "text")
    return max(0, n_free - (record.finish == "stop"))


def _form_differences(record: CandidateRecord, run: OpenedRun, sampled: Sampled) -> Iterator[str]:
    """Whether tokens, log-probabilities, text and the way it ended go together."""
    n_tokens = len(record.token_ids)
    if len(record.logprobs) != n_tokens:
        yield f"{len(record.logprobs)} log-probabilities for {n_tokens} tokens"
    n_free = n_tokens - (sampled.mode != "text" and record.finish != "refused")
    if n_free > (0 if sampled.mode == "direct" else sampled.max_completion_tokens):
        yield f"{n_free} tokens of free text, the trial allows {sampled.max_completion_tokens}"
    if record.finish == "refused":
        if n_tokens or record.text:
            yield "a refused prompt has an answer"
    elif sampled.mode != "text" and is_choice_task(run.task):
        if not record.supplied_ids:
            yield "nothing was supplied before the label"
        answer = record.text.rpartition(supplied_text(run.task, sampled.mode))
        if not answer[1] or answer[2].strip() not in run.task.labels:
            yield f"the text ends in {_short(record.text[-20:])}, not in an answer"


def _named_differences(found: dict[str, Any], expected: dict[str, Any], prefix: str = "") -> Iterator[str]:
    if canonical(found) == canonical(expected):
        return
    for name in sorted(found.keys() | expected.keys()):
        ours, theirs = found.get(name), expected.get(name)
        if canonical(ours) != canonical(theirs):
            yield f"{prefix}{name} is {_short(ours)}, recounted {_short(theirs)}"


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _flat_score(record: CandidateRecord) -> dict[str, Any]:
    score = score_json(record.score)
    return {
        "reward": score["reward"],
        "detail": score["detail"],
        **{f"figures.{name}": value for name, value in score["figures"].items()},
    }


def _short(value: Any, most: int = 80) -> str:
    text = canonical(value)
    return text if len(text) <= most else f"{text[:most]}..."
