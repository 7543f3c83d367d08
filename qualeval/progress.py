"""How a run looks while it goes: one live line a part on a terminal, plain lines elsewhere.

Gets events as a `Watcher` and writes to the stream it is given; decides nothing.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import TextIO

from qualeval.records import Verdict

PLAIN_EVERY = 15.0
"""Seconds between two progress lines where there is no terminal."""


@dataclass(slots=True)
class PartProgress:
    """Counts of one part. `asked` are those of this session, the first of which ended at `first`:
    a part that shares the pool may wait long for its turn, which says nothing of its pace.
    """

    total: int
    done: int
    first: float | None = None
    asked: int = 0
    right: int = 0
    cut_off: int = 0
    errors: int = 0

    def counts(self) -> str:
        """Right so far, cut off, errors, in words."""
        return (
            f"{self.right} right of {self.asked - self.errors} now, "
            f"{self.cut_off} cut off, {self.errors} errors"
        )

    def seconds_left(self, moment: float) -> float | None:
        """At the pace since the first answer of this session; None before its second."""
        if self.first is None or self.asked < 2:
            return 0.0 if self.done == self.total else None
        return (moment - self.first) / (self.asked - 1) * (self.total - self.done)


def duration(seconds: float | None) -> str:
    """Seconds as 0:42, 12:05 or 1:02:03; ? when not known."""
    if seconds is None:
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class PlainProgress:
    """A line when a part starts and ends, and every few seconds in between."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._parts: dict[str, PartProgress] = {}
        self._in_flight = 0
        self._next_line = clock() + PLAIN_EVERY

    def __enter__(self) -> "PlainProgress":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def say(self, message: str) -> None:
        """Print an event. A reader that is gone (`| head`, a closed terminal) ends no run."""
        with suppress(OSError):
            print(message, file=self._stream, flush=True)

    def part_starts(self, name: str, done: int, total: int) -> None:
        """A part begins."""
        self._parts[name] = PartProgress(total, done)
        before = f", {done} already on disk" if done else ""
        self.say(f"{name}: {total} answers wanted{before}")

    def answered(self, name: str, verdict: Verdict | None) -> None:
        """A request ended."""
        moment = self._clock()
        part = count_answer(self._parts[name], verdict, moment)
        if part.done == part.total or moment >= self._next_line:
            self._next_line = moment + PLAIN_EVERY
            left = duration(part.seconds_left(moment))
            self.say(
                f"{name}: {part.done} / {part.total}, {part.counts()}, "
                f"{self._in_flight} in flight, {left} left"
            )

    def in_flight(self, change: int) -> None:
        """A request was sent or came back."""
        self._in_flight += change


class LiveProgress:
    """One live line a part, by rich."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TaskID as _TaskID  # only for the annotation below

        self._bars = Progress(
            TextColumn("{task.description:<8}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[counts]}"),
            TextColumn("{task.fields[flight]}"),
            TextColumn("{task.fields[left]}"),
            console=Console(file=stream),
            refresh_per_second=4,
        )
        self._parts: dict[str, tuple[PartProgress, _TaskID]] = {}
        self._in_flight = 0

    def __enter__(self) -> "LiveProgress":
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def say(self, message: str) -> None:
        """Print an event above the lines."""
        with suppress(OSError):  # as above
            self._bars.console.print(message, markup=False, highlight=False)

    def part_starts(self, name: str, done: int, total: int) -> None:
        """A part begins."""
        part = PartProgress(total, done)
        bar = self._bars.add_task(name, total=total, completed=done, counts="", flight="", left="")
        self._parts[name] = (part, bar)

    def answered(self, name: str, verdict: Verdict | None) -> None:
        """A request ended."""
        part, bar = self._parts[name]
        moment = monotonic()
        count_answer(part, verdict, moment)
        self._bars.update(
            bar,
            completed=part.done,
            counts=part.counts(),
            flight=f"{self._in_flight} in flight",
            left=f"{duration(part.seconds_left(moment))} left",
        )

    def in_flight(self, change: int) -> None:
        """A request was sent or came back."""
        self._in_flight += change


def count_answer(part: PartProgress, verdict: Verdict | None, moment: float) -> PartProgress:
    """Add a request that ended at `moment` to its part; a given-up one is an error and not done."""
    if part.first is None:
        part.first = moment
    part.asked += 1
    if verdict is None:
        part.errors += 1
    else:
        part.done += 1
        part.right += verdict.right
        part.cut_off += verdict.cut_off
    return part


def progress_on(stream: TextIO) -> LiveProgress | PlainProgress:
    """Live lines when the stream is a terminal, plain ones when it is not."""
    return LiveProgress(stream) if stream.isatty() else PlainProgress(stream)
