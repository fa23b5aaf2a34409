"""What a recount found: differences with their places, and counts of what was checked."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loratrial.errors import RunFolderError

MOST_PER_FILE = 20
"""Differences named in full for one file; the rest are counted."""


@dataclass(frozen=True)
class RecountReport:
    """What a recount found."""

    differences: list[str]
    """Each names file, line and what; empty when every number was derived again."""
    checked: dict[str, int]
    """How much was: ledgers, groups, candidates, tokens, updates, figures."""
    result: dict[str, Any]
    """The result from the derived scores; empty when the ledgers do not allow one."""


@dataclass
class Findings:
    """Collects what a recount finds in the run folder at `root`."""

    root: Path
    differences: list[str] = field(default_factory=list)
    checked: Counter[str] = field(default_factory=Counter)
    lost: bool = False
    """Whether some ledger could not be followed to its end, so that no result can be derived."""
    _of_file: Counter[Path] = field(default_factory=Counter)

    def add(self, path: Path, line: int | None, what: str) -> None:
        """One difference, on one line; past 20 in one file they are only counted."""
        self._of_file[path] += 1
        if self._of_file[path] <= MOST_PER_FILE:
            place = path.relative_to(self.root)
            self.differences.append(_printable(f"{place}:{line}: {what}" if line else f"{place}: {what}"))

    def add_error(self, path: Path, error: RunFolderError) -> None:
        """An error of reading `path`, whose message begins with `path:line: ` or `path`."""
        text = str(error).removeprefix(str(path)).removeprefix(":").strip()
        head, _, tail = text.partition(": ")
        self.add(path, *((int(head), tail) if head.isdigit() else (None, text)))

    def report(self, result: dict[str, Any]) -> RecountReport:
        more = [
            f"{path.relative_to(self.root)}: and {count - MOST_PER_FILE} more differences"
            for path, count in self._of_file.items()
            if count > MOST_PER_FILE
        ]
        return RecountReport(self.differences + more, dict(self.checked), result)


def told(error: Exception, root: Path) -> str:
    """An error's line without the run folder's own path, which differs from reader to reader."""
    return str(error).replace(f"{root}/", "").replace(f"{root}: ", "")


def _printable(text: str) -> str:
    """`text` with everything escaped that could move a terminal: what a model wrote may stand in it."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "surrogatepass").decode()
        for character in text
    )
