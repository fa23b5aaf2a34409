"""The records published with the notes system, where they are at hand: our code gives its counts."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from loratrial.tasks.notes.notes import Fact, merge, parse
from loratrial.tasks.notes.prompts import messages
from loratrial.tasks.notes.rows import rows
from loratrial.tasks.notes.scoring import value_recall
from loratrial.tasks.notes.task import NotesTask
from loratrial.tasks.notes.values import EMPTY, UNKNOWN, text_signature, value_signature
from loratrial.tasks.task import Item

DATA = Path(__file__).parents[4] / "shared" / "data"

pytestmark = pytest.mark.skipif(
    not (DATA / "scoring_cases.json").exists(), reason="the published records are not beside this checkout"
)


def cases() -> dict[str, dict[str, Any]]:
    found = json.loads((DATA / "scoring_cases.json").read_text(encoding="utf-8"))["cases"]
    return {case["name"]: case for case in found}


def sample_rows() -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (DATA / "memory_rows_sample.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def notes_of(case: dict[str, Any]) -> tuple[Fact, ...]:
    if "notes_after" in case:
        return parse(case["notes_after"])
    prior = notes_of(cases()[case["prior_from"]]) if "prior_from" in case else parse(case["prior"])
    return merge(prior, parse(case["output"]))


@pytest.mark.parametrize("number", range(3))
def test_the_published_counts_come_out(number: int) -> None:
    case = list(cases().values())[number]
    expect = case["expect"]
    if case["target_values"] is None:
        # The target was not published: the matched values are, the others match nothing.
        spelled = {"empty": EMPTY, "unknown": UNKNOWN}
        target = {spelled.get(text, text_signature(text)) for text in expect["matched_are"]}
        target |= {text_signature(f"elsewhere {n}") for n in range(expect["target_values"] - len(target))}
    else:
        target = {value_signature(value) for value in case["target_values"]}
    found = value_recall(notes_of(case), target)
    assert {
        "target_values": found.target_values,
        "matched": len(found.matched),
        "missing": len(found.missing),
        "unsupported": len(found.unsupported),
        "exact": found.exact,
    } == {key: expect[key] for key in ("target_values", "matched", "missing", "unsupported", "exact")}
    if "saved_facts" in expect:
        assert len(notes_of(case)) == expect["saved_facts"]


def test_published_completions_score_exact_by_their_published_signatures() -> None:
    for row in sample_rows():
        found = value_recall(parse(row["completion"]), row["target_value_signatures"])
        assert found.exact
        assert found.target_values == row["target_value_count"]


def test_our_rows_have_the_published_fields_types_and_prompt_frame(easy: NotesTask) -> None:
    theirs, ours = sample_rows(), list(rows(easy.dataset))[:2]
    for their, our in zip(theirs, ours, strict=True):
        assert list(our) == list(their)
        assert {key: type(value) for key, value in our.items()} == {
            key: type(value) for key, value in their.items()
        }
        assert [message["role"] for message in our["messages"]] == [
            message["role"] for message in their["messages"]
        ]
        assert our["messages"][1]["content"] == our["prompt"]
        assert len(our["current_time"]) == len(their["current_time"])
        assert len(our["profile_sha256"]) == len(their["profile_sha256"])


def test_the_published_layout_rebuilds_a_published_prompt_character_for_character() -> None:
    for row in sample_rows():
        sessions: list[dict[str, Any]] = []
        for line in row["prompt"].split("\n"):
            if re.fullmatch(r"Session \d+:", line):
                sessions.append({"start": "", "statements": []})
            elif line.startswith("["):
                time, text = line[1:].split("] ", 1)
                sessions[-1]["statements"].append({"time": time, "text": text})
        item = Item("s", 0, {"current_time": row["current_time"], "sessions": sessions})
        assert messages(item, "", "published", "full")[1].content == row["prompt"]
