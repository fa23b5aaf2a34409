"""The run folder, format 2: where each file lies, who may write, and how a file is replaced whole.

What the files say is for the modules that write and read them; `docs/run-folder.md` describes them all.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loratrial.errors import RunFolderError
from loratrial.evidence.jsonio import parse, pretty

FORMAT = 2
"""The version of the folder's layout that this package writes and reads."""


@dataclass(frozen=True)
class RunFolder:
    """The paths of one run."""

    root: Path

    @property
    def run_file(self) -> Path:
        return self.root / "run.json"

    @property
    def trial_file(self) -> Path:
        """The resolved trial file, every default written out."""
        return self.root / "trial.toml"

    @property
    def lock_file(self) -> Path:
        return self.root / "lock"

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def result_file(self) -> Path:
        return self.root / "result.json"

    def arm(self, arm: str) -> Path:
        return self.root / "arms" / arm

    def arm_file(self, arm: str) -> Path:
        return self.arm(arm) / "arm.json"

    def training_ledger(self, arm: str) -> Path:
        return self.arm(arm) / "ledger.jsonl"

    def updates(self, arm: str) -> Path:
        return self.arm(arm) / "updates.jsonl"

    def adapter(self, arm: str) -> Path:
        return self.arm(arm) / "adapter"

    def evaluation_ledger(self, arm: str, section: str, seed: int) -> Path:
        """`section` is the split, with the mode behind it where answers were not plain text."""
        return self.root / "evaluation" / arm / f"{section}-{seed}.jsonl"

    def qualification(self, arm: str) -> Path:
        return self.arm(arm) / "qualification.json"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the one writer of this run, for as long as the context lasts.

        The lock is the kernel's, held by a living process: a dead one leaves none behind, and the file stays.
        Raises RunFolderError when another process holds it.
        """
        descriptor = os.open(self.lock_file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunFolderError(
                    f"{self.root} is being written by another process; wait for it or stop it"
                ) from None
            yield
        finally:
            os.close(descriptor)

    def read_run(self) -> dict[str, Any]:
        """What run.json says.

        Raises RunFolderError when there is none, or when its format is not the one that this package reads.
        """
        if not self.run_file.exists():
            raise RunFolderError(f"{self.root} is no run folder: it has no run.json")
        run = read_object(self.run_file)
        if run.get("format") != FORMAT:
            raise RunFolderError(
                f"{self.run_file} has format {run.get('format')!r}; this version reads format {FORMAT}"
            )
        return run

    def write_run(self, **entries: Any) -> None:
        """Replace run.json whole by `entries` and the format."""
        write_atomic(self.run_file, pretty({"format": FORMAT, **entries}))


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object of one file; raises RunFolderError when it is missing or anything else."""
    try:
        value = parse(path.read_bytes())
    except FileNotFoundError:
        raise RunFolderError(f"{path} is missing; loratrial resume the run") from None
    except ValueError as error:
        raise RunFolderError(f"{path} is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise RunFolderError(f"{path} is no JSON object")
    return value


def write_atomic(path: Path, data: str | bytes) -> None:
    """Replace `path` whole: written beside it, fsynced, renamed, and the rename itself on disk at return.

    A crash leaves the file of before or the file of after. The folder has one writer, so the name beside it
    is fixed, and what a crash leaves there is overwritten by the next write.
    """
    beside = path.with_name(path.name + ".tmp")
    try:
        with beside.open("wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    fsync_folder(path.parent)


def fsync_folder(folder: Path) -> None:
    """Put the names in `folder` on disk: a new or renamed file survives a loss of power only then."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
