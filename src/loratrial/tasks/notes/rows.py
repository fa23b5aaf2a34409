"""Export in the published row format: one JSON object a session, with complete canonical notes.

The references start from empty memory; they are for supervised fine-tuning, not samples of a policy.
Reading published rows back in is not done here.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from loratrial.tasks import dataset as files
from loratrial.tasks.notes.gold import canonical_notes
from loratrial.tasks.notes.prompts import messages
from loratrial.tasks.task import Dataset, Json, Task

SPLITS = {"train": "train", "eval": "test"}
"""Our split to the name that the published rows use."""


def rows(dataset: Dataset) -> Iterator[dict[str, Json]]:
    """Every item as a published row, in the order of the dataset, with the full instructions."""
    for stream in dataset.streams:
        for item in stream.items:
            private = dataset.target(item).private
            system, user = messages(item, "", "published", "full")
            completion = canonical_notes(private)
            profile = {attribute["key"]: attribute["value"] for attribute in private["attributes"]}
            yield {
                "id": f"{stream.id}-session{item.index + 1:02d}",
                "user_id": stream.id,
                "session_index": item.index,
                "split": SPLITS.get(stream.split, stream.split),
                "current_time": item.public["current_time"],
                "system": system.content,
                "prompt": user.content,
                "completion": completion,
                "messages": [
                    {"role": "system", "content": system.content},
                    {"role": "user", "content": user.content},
                    {"role": "assistant", "content": completion},
                ],
                "target_profile_json": json.dumps(profile),
                "target_value_signatures": list(private["signatures"]),
                "target_value_count": len(private["signatures"]),
                "profile_sha256": private["profile_sha256"],
            }


def write_rows(dataset: Dataset, folder: Path) -> dict[str, int]:
    """Write `rows-train.jsonl` and `rows-test.jsonl` into `folder`; the number of rows by file name."""
    folder.mkdir(parents=True, exist_ok=True)
    written = list(rows(dataset))
    counts = {}
    for split in ("train", "test"):
        lines = [files.canonical_line(row) for row in written if row["split"] == split]
        counts[f"rows-{split}.jsonl"] = len(lines)
        (folder / f"rows-{split}.jsonl").write_bytes("".join(lines).encode())
    return counts


def write_dataset(task: Task, folder: Path) -> str:
    """Write the task's dataset as items, targets and published rows; the dataset's hash."""
    digest = files.write(task.dataset, folder)
    write_rows(task.dataset, folder)
    return digest
