"""Progress as lines, as bars and as silence."""

import io
import time

import pytest
from rich.console import Console

from loratrial.progress import BarProgress, LineProgress, SilentProgress, duration, pace, progress_for


class Clock:
    """A clock that stands still until it is told otherwise."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def lines_of(stream: io.StringIO) -> list[str]:
    return stream.getvalue().splitlines()


def test_a_terminal_gets_bars_a_pipe_gets_lines_and_quiet_gets_nothing() -> None:
    assert isinstance(progress_for(stream=Terminal()), BarProgress)
    assert isinstance(progress_for(stream=io.StringIO()), LineProgress)
    assert isinstance(progress_for(quiet=True, stream=Terminal()), SilentProgress)


def test_progress_goes_to_standard_error_so_that_results_can_be_piped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    progress_for().say("loading")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "loading\n")


def test_a_stage_speaks_at_its_start_at_its_end_and_at_most_every_few_seconds() -> None:
    clock, stream = Clock(), io.StringIO()
    with LineProgress(stream, clock, every=5).stage("training grpo", 100, "groups") as stage:
        for _ in range(100):
            clock.now += 0.5
            stage.advance()
    said = lines_of(stream)
    assert said[0] == "training grpo: 100 groups"
    assert said[1] == "training grpo: 10 of 100 groups, 2 groups/s, 45 s left"
    assert said[-1] == "training grpo: 100 groups done in 50 s (2 groups/s)"
    assert len(said) == 2 + 9


def test_a_note_follows_the_remaining_time() -> None:
    clock, stream = Clock(), io.StringIO()
    with LineProgress(stream, clock, every=1).stage("s", 4, "items") as stage:
        clock.now += 8
        stage.advance(2, note="reward 0.5")
    assert lines_of(stream)[1] == "s: 2 of 4 items, 4 s per item, 8.0 s left, reward 0.5"


def test_units_done_before_a_resumed_stage_do_not_flatter_its_rate() -> None:
    clock, stream = Clock(), io.StringIO()
    with LineProgress(stream, clock, every=1).stage("s", 100, "items", done=90) as stage:
        clock.now += 10
        stage.advance(0)
        clock.now += 10
        stage.advance(5)
    assert lines_of(stream) == [
        "s: 100 items, 90 done before",
        "s: 90 of 100 items",
        "s: 95 of 100 items, 4 s per item, 20 s left",
        "s: 95 items done in 20 s (4 s per item)",
    ]


def test_a_stage_that_breaks_off_says_how_far_it_came() -> None:
    stream = io.StringIO()

    def break_off() -> None:
        with LineProgress(stream, Clock()).stage("s", 10, "items") as stage:
            stage.advance(3)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()
    assert lines_of(stream)[-1] == "s: stopped after 3 of 10 items"


def test_silence_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    progress = SilentProgress()
    progress.say("hidden")
    with progress.stage("s", 2, "items") as stage:
        stage.advance(note="hidden")
    assert capsys.readouterr() == ("", "")


def bars(width: int = 120) -> tuple[BarProgress, Terminal]:
    stream = Terminal()
    return BarProgress(Console(file=stream, force_terminal=True, width=width, no_color=True)), stream


def test_a_bar_shows_name_count_unit_and_note_with_brackets_as_they_are() -> None:
    progress, stream = bars()
    with progress.stage("eval [bold]base", 4, "items") as stage:
        stage.advance(1)
        stage.advance(2, note="reward [0.5]")
        stage.advance(1)
    shown = stream.getvalue()
    for expected in ("eval [bold]base", "4/4", "items", "reward [0.5]", " s"):
        assert expected in shown


def test_an_unfinished_bar_shows_what_is_left_and_a_message_passes_beside_it() -> None:
    progress, stream = bars()
    with progress.stage("s", 1000, "items") as stage:
        stage.advance(1)
        progress.say("loading [tiny]")
        time.sleep(0.15)
    assert " left" in stream.getvalue()
    assert "1/1000" in stream.getvalue()
    assert "loading [tiny]" in stream.getvalue()


def test_stages_may_nest_and_follow_each_other_on_a_terminal() -> None:
    progress, stream = bars()
    with progress.stage("outer", 1, "arms") as outer:
        with progress.stage("inner", 2, "items") as inner:
            inner.advance(2)
        outer.advance()
    after_first = len(stream.getvalue())
    with progress.stage("next", 1, "items") as stage:
        stage.advance()
    assert "inner" in stream.getvalue()[:after_first]
    assert "outer" not in stream.getvalue()[after_first:]
    assert "1/1" in stream.getvalue()[after_first:]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 s"),
        (4.24, "4.2 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
    ],
)
def test_durations_read_as_people_say_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("n", "seconds", "text"),
    [
        (0, 5, ""),
        (5, 0, ""),
        (10, 5, "2 items/s"),
        (1, 27.31, "27.3 s per item"),
        (100000, 1, "100000 items/s"),
    ],
)
def test_a_rate_is_per_second_or_seconds_per_unit(n: int, seconds: float, text: str) -> None:
    assert pace(n, seconds, "items") == text
