"""Whatever the options, the data keeps its promises; and the page says what the code does."""

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loratrial.tasks.dataset import dataset_files
from loratrial.tasks.notes import NotesOptions, NotesTask
from loratrial.tasks.notes.options import NotesOptions as Options
from loratrial.tasks.notes.world import Family

PAGE = Path(__file__).parents[3] / "docs" / "notes-task.md"
FAMILIES: tuple[Family, ...] = ("person", "size", "favorite", "list", "compound", "intent", "temporary")

options = st.builds(
    Options,
    train_users=st.integers(0, 2),
    eval_users=st.integers(0, 1),
    sessions=st.integers(1, 5),
    statements=st.integers(1, 6),
    updates=st.sampled_from([0.0, 0.5, 1.0]),
    distractors=st.sampled_from([0.0, 0.3, 0.8]),
    attributes=st.lists(st.sampled_from(FAMILIES), min_size=1, unique=True)
    .filter(lambda families: families != ["temporary"])
    .map(tuple),
    disjoint=st.sampled_from([(), ("users",), ("templates",), ("values",), ("users", "templates", "values")]),
    reward=st.sampled_from(["value_recall", "assignment_f1"]),
    layout=st.sampled_from(["stable", "published"]),
)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(options, st.integers(0, 2**63 - 1))
def test_any_options_and_seed_make_data_on_which_the_grader_is_proven(drawn: Options, seed: int) -> None:
    task = NotesTask.create(drawn, None, seed)
    task.validate()
    again = NotesTask.create(drawn, task.dataset, 0)
    again.validate()
    assert dataset_files(again.dataset) == dataset_files(task.dataset)
    assert len(task.dataset.targets) == (drawn.train_users + drawn.eval_users) * drawn.sessions


def blocks() -> list[dict[str, object]]:
    found = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    tables = [tomllib.loads(text)["task"] for text in found]
    assert all(table.pop("kind") == "notes" for table in tables)
    return tables


def test_the_page_states_the_defaults() -> None:
    stated = blocks()[0]
    assert NotesOptions.model_validate(stated) == NotesOptions()
    assert set(stated) == set(NotesOptions.model_fields) - {"data_seed"}


@pytest.fixture(scope="module")
def stated_tasks() -> list[NotesTask]:
    return [NotesTask.create(NotesOptions.model_validate(table), None, 2718) for table in blocks()]


@pytest.mark.parametrize("policy", ["copy_statements", "copy_last_session", "oracle"])
def test_the_page_states_what_the_references_reach(policy: str, stated_tasks: list[NotesTask]) -> None:
    figures = ("recall", "precision", "assignment_f1", "exact_state")
    cells = []
    for task in stated_tasks:
        scores = []
        for stream in task.dataset.streams:
            state = ""
            for item in stream.items:
                target = task.dataset.target(item)
                reading = task.read(item, task.references()[policy](item, state, target), state)
                state = reading.state
                scores.append(task.score(target, reading).figures)
        cells.append(
            [f"{100 * sum(score[figure] for score in scores) / len(scores):.1f}" for figure in figures]
        )
    row = " | ".join(f"{easy} / {hard}".replace(".0", "") for easy, hard in zip(*cells, strict=True))
    assert f"| `{policy}` | {row} |" in PAGE.read_text(encoding="utf-8")
