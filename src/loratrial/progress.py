"""How far a long computation is: bars on a terminal, sparse lines in a log, nothing when asked for.

All of it goes to standard error, so that results on standard output can be piped. Left out: figures of what
is learned, beyond the one short note that a stage may show.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, TaskID, TextColumn
from rich.progress import Progress as RichProgress
from rich.progress import Task as RichTask
from rich.text import Text

SECONDS_BETWEEN_LINES = 5.0


class Stage(Protocol):
    """One stage of the work, as the code that does it sees it."""

    def advance(self, n: int = 1, note: str = "") -> None:
        """`n` more units are done; `note` says something of the last of them."""
        ...


class Progress(Protocol):
    """Where stages and plain messages are shown."""

    def stage(self, name: str, total: int, unit: str, done: int = 0) -> AbstractContextManager[Stage]:
        """A stage of `total` units (named in the plural), of which `done` were there before it began: they
        count as done and not towards the rate."""
        ...

    def say(self, text: str) -> None:
        """One message."""
        ...


def progress_for(quiet: bool = False, stream: TextIO | None = None) -> Progress:
    """Bars when `stream` (standard error) is a terminal, otherwise lines; silence when `quiet`."""
    stream = stream or sys.stderr
    if quiet:
        return SilentProgress()
    return BarProgress(Console(file=stream)) if stream.isatty() else LineProgress(stream)


def duration(seconds: float) -> str:
    """`seconds` as a reader says it: 4.2 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return (
        f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"
    )


def pace(n: int, seconds: float, unit: str) -> str:
    """The rate of `n` units in `seconds`: units a second or, when that is below one, seconds a unit."""
    if n <= 0 or seconds <= 0:
        return ""
    rate = n / seconds
    if rate < 1:
        return f"{1 / rate:.3g} s per {unit.removesuffix('s')}"
    return f"{rate:.3g} {unit}/s" if rate < 100 else f"{rate:.0f} {unit}/s"


@dataclass
class _Silence:
    def advance(self, n: int = 1, note: str = "") -> None:
        """Shows nothing."""


class SilentProgress:
    """Shows nothing at all."""

    @contextmanager
    def stage(self, name: str, total: int, unit: str, done: int = 0) -> Iterator[Stage]:
        yield _Silence()

    def say(self, text: str) -> None:
        """Shows nothing."""


class LineProgress:
    """Plain lines: one when a stage starts, one when it ends, at most one every few seconds between."""

    def __init__(
        self,
        stream: TextIO,
        clock: Callable[[], float] = time.monotonic,
        every: float = SECONDS_BETWEEN_LINES,
    ) -> None:
        self._stream, self._clock, self._every = stream, clock, every

    @contextmanager
    def stage(self, name: str, total: int, unit: str, done: int = 0) -> Iterator[Stage]:
        stage = _LineStage(name, total, unit, done, self._clock, self._every, self.say)
        self.say(f"{name}: {total} {unit}" + (f", {done} done before" if done else ""))
        finished = False
        try:
            yield stage
            finished = True
        finally:
            self.say(stage.ending(finished))

    def say(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


class _LineStage:
    def __init__(
        self,
        name: str,
        total: int,
        unit: str,
        done: int,
        clock: Callable[[], float],
        every: float,
        say: Callable[[str], None],
    ) -> None:
        self._name, self._total, self._unit, self._before = name, total, unit, done
        self._clock, self._every, self._say = clock, every, say
        self._done = done
        self._started = self._spoke = clock()

    def advance(self, n: int = 1, note: str = "") -> None:
        self._done += n
        now = self._clock()
        if now - self._spoke < self._every or self._done >= self._total:
            return
        self._spoke = now
        new, seconds = self._done - self._before, now - self._started
        parts = [f"{self._name}: {self._done} of {self._total} {self._unit}", pace(new, seconds, self._unit)]
        if new > 0:
            parts.append(f"{duration((self._total - self._done) * seconds / new)} left")
        self._say(", ".join(part for part in [*parts, note] if part))

    def ending(self, finished: bool) -> str:
        seconds = self._clock() - self._started
        rate = pace(self._done - self._before, seconds, self._unit)
        how = f" ({rate})" if rate else ""
        if finished:
            return f"{self._name}: {self._done} {self._unit} done in {duration(seconds)}{how}"
        return f"{self._name}: stopped after {self._done} of {self._total} {self._unit}"


class BarProgress:
    """One bar a stage, with rate and remaining time; for a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = RichProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[unit]}", markup=False),
            _Pace(),
            TextColumn("{task.fields[note]}", markup=False),
            console=console,
        )
        self._open = 0

    @contextmanager
    def stage(self, name: str, total: int, unit: str, done: int = 0) -> Iterator[Stage]:
        bar = self._bars.add_task(name, total=total, completed=done, unit=unit, note="", before=done)
        if not self._open:
            self._bars.start()
        self._open += 1
        try:
            yield _BarStage(self._bars, bar)
        finally:
            self._bars.stop_task(bar)
            self._open -= 1
            if not self._open:
                # the finished bars stay on the screen; the next stage starts below them
                self._bars.stop()
                for shown in self._bars.task_ids:
                    self._bars.remove_task(shown)

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class _BarStage:
    bars: RichProgress
    bar: TaskID

    def advance(self, n: int = 1, note: str = "") -> None:
        if note:
            self.bars.update(self.bar, note=note)
        self.bars.advance(self.bar, n)


class _Pace(ProgressColumn):
    """Rate and remaining time, or the time taken once the stage is over."""

    def render(self, task: RichTask) -> Text:
        new, seconds = int(task.completed - task.fields["before"]), task.elapsed or 0.0
        parts = [pace(new, seconds, task.fields["unit"])]
        if task.finished or task.stop_time is not None:
            parts.append(duration(seconds))
        elif new > 0 and task.remaining is not None:
            parts.append(f"{duration(task.remaining * seconds / new)} left")
        return Text(", ".join(part for part in parts if part))
