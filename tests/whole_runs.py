"""Runs of the trial of `letters_task`, and what of their files has to be the same when they are repeated."""

import json
from hashlib import sha256
from pathlib import Path

from letters_task import TRIAL, letters_trial

from loratrial.evidence.ledger import CandidateRecord, read_groups
from loratrial.progress import SilentProgress
from loratrial.trial.run import resume_trial, run_trial

MEASURED = {"sampling_seconds", "learning_seconds", "peak_memory_bytes"}
"""What a line of a learning record says of the machine, and not of the trial."""


def run_letters(folder: Path, *overrides: str, text: str = TRIAL) -> Path:
    """Run the trial with single values put into it; returns the run folder."""
    run_trial(letters_trial(*overrides, text=text), folder, SilentProgress(), "test")
    return folder


def resume(folder: Path) -> Path:
    resume_trial(folder, SilentProgress())
    return folder


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def learned(path: Path) -> list[dict]:
    """A learning record without what it says of the machine."""
    return [{name: value for name, value in line.items() if name not in MEASURED} for line in lines_of(path)]


def repeatable(folder: Path) -> dict[str, object]:
    """Everything in a run folder that the trial alone decides, by file; ledgers and adapters as hashes."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_dir() or name in ("lock", "run.json"):
            continue
        if path.name == "updates.jsonl":
            found[name] = learned(path)
        elif path.name == "arm.json":
            found[name] = {**json.loads(path.read_text()), "seconds": None}
        elif path.suffix in (".jsonl", ".safetensors"):
            found[name] = sha256(path.read_bytes()).hexdigest()
        else:
            found[name] = path.read_text()
    return found


def ledger(folder: Path, name: str) -> list[list[CandidateRecord]]:
    """The groups of one ledger: `arms/trained/ledger` or `evaluation/base/eval-7`."""
    return list(read_groups(folder / f"{name}.jsonl"))
