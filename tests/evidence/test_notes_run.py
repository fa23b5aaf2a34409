"""The evidence side over the notes task itself: what a real run folder of it recounts to."""

import json
import random
import shutil

import pytest
from evidence_toy import TRIAL, Writer

from loratrial.evidence.jsonio import canonical
from loratrial.evidence.recount import recount
from loratrial.evidence.table import plain

NOTES = TRIAL.replace(
    'kind = "evidence_toy:ToyTask"',
    'kind = "notes"\ntrain_users = 2\neval_users = 5\nsessions = 2\nstatements = 2',
).replace("[sampling]", "[sampling]\nmax_completion_tokens = 900")


class NotesWriter(Writer):
    """Answers with some of the gold lines, with lines of its own, or with what no reader takes."""

    def answer(self, item, state, seed, skill):
        chance = random.Random(seed)
        if chance.random() < 0.1:
            return "```json"
        gold = self.task.gold(item, state, self.task.dataset.target(item)).splitlines()
        lines = [line for line in gold if chance.random() < skill]
        return "\n".join([*lines, f"colour: {chance.choice(['teal', 'mauve'])}"][: None if lines else 1])


@pytest.fixture(scope="module")
def notes_run(tmp_path_factory):
    root = tmp_path_factory.mktemp("notes") / "run"
    NotesWriter(root, NOTES).write()
    return root


def test_a_notes_run_recounts_without_a_difference_and_shows_its_figures(notes_run):
    report = recount(notes_run)
    assert report.differences == []
    recall = {
        arm: result["pooled"]["recall"]["mean"]
        for arm, result in report.result["sections"]["eval"]["arms"].items()
    }
    assert recall["base"] < recall["warm"] < recall["trained"]
    assert report.result["sections"]["eval"]["references"]["oracle"]["recall"]["mean"] == 1.0
    text = plain(report.result)
    assert all(label in text for label in ("Value recall", "Assignment F1", "copy_statements"))


def test_a_note_that_was_put_in_afterwards_is_named(notes_run, tmp_path):
    run = shutil.copytree(notes_run, tmp_path / "run")
    path = run / "evaluation/trained/eval-7.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    value = json.loads(lines[0])
    value["reading"]["state"] += "\npets: one cat"
    lines[0] = canonical(value) + "\n"
    path.write_text("".join(lines))
    assert [each.split(" is ")[0] for each in recount(run).differences] == [
        "evaluation/trained/eval-7.jsonl:1: reading.state"
    ]
