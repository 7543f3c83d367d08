"""How a run looks while it goes: counts that are true, a line in time, no thinking of its own."""

import io
import re
from collections.abc import Iterator

import pytest

from qualeval import progress
from qualeval.progress import (
    PLAIN_EVERY,
    LiveProgress,
    PartProgress,
    PlainProgress,
    count_answer,
    duration,
    progress_on,
)
from qualeval.records import Verdict

RIGHT = Verdict(right=True, cut_off=False, rule="bare", reason="r")
WRONG = Verdict(right=False, cut_off=False, rule="bare", reason="r")
CUT = Verdict(right=False, cut_off=True, rule="cut_off", reason="r")


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.moment = 1000.0

    def __call__(self) -> float:
        return self.moment


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def plain(stream: io.StringIO, clock: Clock) -> Iterator[PlainProgress]:
    with PlainProgress(stream, clock) as watcher:
        yield watcher


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (None, "?"),
        (0, "0:00"),
        (42.4, "0:42"),
        (59.6, "1:00"),
        (725, "12:05"),
        (3599.9, "1:00:00"),
        (3723, "1:02:03"),
        (90_000, "25:00:00"),
    ],
)
def test_duration_is_read_as_a_clock(seconds: float | None, expected: str) -> None:
    """Never 0:60."""
    assert expected == duration(seconds)


def test_outcomes_are_counted_apart() -> None:
    """A failed request is an error, not wrong and not done."""
    part = PartProgress(total=10, done=3)
    for verdict in (RIGHT, WRONG, CUT, None):
        count_answer(part, verdict, 0.0)
    assert (6, 4, 1, 1, 1) == (part.done, part.asked, part.right, part.cut_off, part.errors)
    assert "1 right of 3 now, 1 cut off, 1 errors" == part.counts()


def test_time_left_is_at_the_pace_of_this_session() -> None:
    """Answers on disk cost nothing now, nor does waiting for a turn before the first answer."""
    part = PartProgress(total=100, done=50)
    assert part.seconds_left(1010.0) is None
    for _ in range(11):
        count_answer(part, RIGHT, 1000.0)
    assert 78.0 == part.seconds_left(1020.0)


def test_start_of_a_part_is_a_line(plain: PlainProgress, stream: io.StringIO) -> None:
    """What is there already is told."""
    plain.part_starts("gpqa", 0, 198)
    plain.part_starts("mmlupro", 7, 400)
    expected = "gpqa: 198 answers wanted\nmmlupro: 400 answers wanted, 7 already on disk\n"
    assert expected == stream.getvalue()


def test_line_comes_every_few_seconds_and_at_the_end(
    plain: PlainProgress, stream: io.StringIO, clock: Clock
) -> None:
    """A log file is not filled by 12,000 lines."""
    plain.part_starts("gpqa", 0, 4)
    plain.in_flight(1)
    plain.in_flight(1)
    plain.answered("gpqa", RIGHT)
    clock.moment += PLAIN_EVERY
    plain.answered("gpqa", CUT)
    plain.answered("gpqa", None)
    plain.in_flight(-1)
    plain.answered("gpqa", RIGHT)
    plain.answered("gpqa", WRONG)
    assert [
        "gpqa: 4 answers wanted",
        "gpqa: 2 / 4, 1 right of 2 now, 1 cut off, 0 errors, 2 in flight, 0:30 left",
        "gpqa: 4 / 4, 2 right of 4 now, 1 cut off, 1 errors, 1 in flight, 0:00 left",
    ] == stream.getvalue().rstrip("\n").split("\n")


def test_event_is_a_line(plain: PlainProgress, stream: io.StringIO) -> None:
    """As it is."""
    plain.say("server is back [0]")
    assert "server is back [0]\n" == stream.getvalue()


def test_terminal_gets_live_lines_and_everything_else_plain_ones(
    stream: io.StringIO,
) -> None:
    """DESIGN 10."""
    assert isinstance(progress_on(Terminal()), LiveProgress)
    assert isinstance(progress_on(stream), PlainProgress)


def test_live_lines_tell_done_right_cut_errors_in_flight_and_time_left(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """DESIGN 10: one live line a part, events above them, no markup read in an event."""
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "monotonic", clock)
    stream = Terminal()
    with progress_on(stream) as watcher:
        watcher.part_starts("gpqa", 2, 6)
        watcher.in_flight(1)
        watcher.answered("gpqa", RIGHT)
        clock.moment += 10
        watcher.answered("gpqa", None)
        watcher.say("item [red]7[/red] failed")
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stream.getvalue())
    assert "item [red]7[/red] failed" in text
    last = text.rstrip().split("\n")[-1]
    assert last.startswith("gpqa")
    assert re.search(r"3/6 +1 right of 1 now, 0 cut off, 1 errors +1 in flight +0:30 left", last)
