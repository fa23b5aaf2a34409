import json
from pathlib import Path

from loratrial.tasks.dataset import dataset_hash, read
from loratrial.tasks.notes import NotesTask, write_dataset
from loratrial.tasks.notes.notes import parse
from loratrial.tasks.notes.prompts import INSTRUCTIONS
from loratrial.tasks.notes.rows import rows
from loratrial.tasks.notes.scoring import value_recall
from loratrial.tasks.notes.values import value_signature


def test_every_item_is_a_row_of_the_published_fields(hard: NotesTask) -> None:
    written = list(rows(hard.dataset))
    assert len(written) == 80
    assert list(written[0]) == [
        "id", "user_id", "session_index", "split", "current_time", "system", "prompt", "completion",
        "messages", "target_profile_json", "target_value_signatures", "target_value_count", "profile_sha256",
    ]  # fmt: skip
    assert written[0]["id"] == "train-01-session01"
    assert written[-1]["id"] == "eval-05-session08"
    assert {row["split"] for row in written} == {"train", "test"}
    assert len({row["id"] for row in written}) == 80


def test_canonical_notes_score_exact_against_the_signatures_of_their_row(hard: NotesTask) -> None:
    for row in rows(hard.dataset):
        found = value_recall(parse(row["completion"], 256), row["target_value_signatures"])
        assert found.exact
        assert found.target_values == row["target_value_count"]
        profile = json.loads(row["target_profile_json"])
        assert (
            sorted({value_signature(value) for value in profile.values()}) == row["target_value_signatures"]
        )


def test_a_row_asks_from_empty_memory_in_the_published_layout(hard: NotesTask) -> None:
    for row in rows(hard.dataset):
        assert row["prompt"].startswith(f"Current time: {row['current_time']}\n\nSession 1:\n[")
        assert row["prompt"].endswith("\n\nPrevious saved notes:\n(none)")
        assert f"Session {row['session_index'] + 1}:" in row["prompt"]
        assert f"Session {row['session_index'] + 2}:" not in row["prompt"]
        assert row["system"] == INSTRUCTIONS["full"]
        assert [(message["role"], message["content"]) for message in row["messages"]] == [
            ("system", row["system"]),
            ("user", row["prompt"]),
            ("assistant", row["completion"]),
        ]


def test_one_profile_hash_a_user(hard: NotesTask) -> None:
    pairs = {(row["user_id"], row["profile_sha256"]) for row in rows(hard.dataset)}
    assert len(pairs) == len({user for user, _ in pairs}) == len({digest for _, digest in pairs}) == 10


def test_a_written_dataset_has_items_targets_and_rows_of_both_splits(hard: NotesTask, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    assert write_dataset(hard, folder) == dataset_hash(hard.dataset)
    assert sorted(path.name for path in folder.iterdir()) == [
        "items.jsonl", "rows-test.jsonl", "rows-train.jsonl", "targets.jsonl",
    ]  # fmt: skip
    assert read(folder) == hard.dataset
    for name, split in (("rows-train.jsonl", "train"), ("rows-test.jsonl", "test")):
        lines = (folder / name).read_bytes().decode().splitlines()
        assert [json.loads(line) for line in lines] == [
            row for row in rows(hard.dataset) if row["split"] == split
        ]
