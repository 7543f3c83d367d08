"""The request pool: as many requests in flight as the server has slots, from first to last.

One worker a slot, all taking from one iterator, so a free slot is refilled at once and nothing is
ever created ahead of its slot. The pool knows no HTTP and no benchmark: a worker is an async
function from a piece of work to a result, and raises `PostponedError` when the same work should be
tried again after a wait. Work that waits gives its slot to other work; at most as many pieces wait
as there are slots (or WAITING), so memory does not grow with the amount of work.
"""

import heapq
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio

WAITING = 16
"""So many pieces may wait for their next try even where there are fewer slots: one that waits must
not keep a single slot from working on."""

Work = TypeVar("Work")
Result = TypeVar("Result")


class PostponedError(Exception):
    """Raised by a worker: the same work should be tried again in `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"again in {seconds} s")
        self.seconds = seconds


Worker = Callable[[Work], Awaitable[Result]]


async def run_pool(
    workers: Sequence[Worker[Work, Result]],
    work: Iterator[Work],
    done: Callable[[Work, Result], None],
    clock: Callable[[], float] | None = None,
) -> None:
    """Run all `work` (None is no work), one piece a worker at a time; hand each result to `done`.

    `done` runs in the event loop between two requests and must be quick. The first exception of a
    worker, of `work` or of `done` cancels the rest and is raised as it is, not in a group.
    """
    queue = _Queue(work, len(workers), clock or anyio.current_time)
    failure: list[BaseException] = []

    async def slot(worker: Worker[Work, Result]) -> None:
        try:
            while (piece := await queue.take()) is not None:
                try:
                    result = await worker(piece)
                except PostponedError as later:
                    queue.put_back(piece, later.seconds)
                else:
                    queue.finished()
                    done(piece, result)
        except Exception as error:
            failure.append(error)
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for worker in workers:
            group.start_soon(slot, worker)
    if failure:
        raise failure[0]


@dataclass(order=True, slots=True)
class _Waiting(Generic[Work]):
    due: float
    number: int
    work: Work = field(compare=False)


class _Queue(Generic[Work]):
    """Fresh work and work that waits for its next try; the latter goes first once it is due."""

    def __init__(self, work: Iterator[Work], slots: int, clock: Callable[[], float]) -> None:
        self._fresh: Iterator[Work] | None = work
        self._most_waiting = max(slots, WAITING)
        self._clock = clock
        self._waiting: list[_Waiting[Work]] = []
        self._running = 0
        self._number = 0
        self._changed = anyio.Event()

    async def take(self) -> Work | None:
        """The next piece, waiting for one if need be; None when nothing can come any more."""
        while True:
            piece = self._next()
            if piece is not None:
                self._running += 1
                return piece
            if not self._waiting and not self._running:
                self._changed.set()
                return None
            changed = self._changed
            wait = self._waiting[0].due - self._clock() if self._waiting else None
            with anyio.move_on_after(wait):
                await changed.wait()

    def _next(self) -> Work | None:
        if self._waiting and self._waiting[0].due <= self._clock():
            return heapq.heappop(self._waiting).work
        if self._fresh is not None and len(self._waiting) < self._most_waiting:
            for work in self._fresh:
                return work
            self._fresh = None
        return None

    def put_back(self, work: Work, seconds: float) -> None:
        self._number += 1
        due = self._clock() + max(0.0, seconds)
        heapq.heappush(self._waiting, _Waiting(due, self._number, work))
        self.finished()

    def finished(self) -> None:
        """A piece has left its slot: whoever waits for work looks again."""
        self._running -= 1
        if self._fresh is None or self._waiting:
            self._changed.set()
            self._changed = anyio.Event()


class InFlightMeter:
    """Counts what is in flight: time-weighted mean from the first start to the last end, and most.

    Times come from `clock`, in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._count = 0
        self._area = 0.0
        self._first: float | None = None
        self._last = 0.0
        self.most = 0

    def enter(self) -> None:
        """One more is in flight."""
        self._step(1)
        self.most = max(self.most, self._count)

    def leave(self) -> None:
        """One less is in flight."""
        self._step(-1)

    def _step(self, change: int) -> None:
        moment = self._clock()
        if self._first is None:
            self._first = self._last = moment
        self._area += self._count * (moment - self._last)
        self._last = moment
        self._count += change

    @property
    def mean(self) -> float:
        """Mean number in flight; 0 when nothing ever was."""
        elapsed = self._last - self._first if self._first is not None else 0.0
        return self._area / elapsed if elapsed > 0 else float(self.most)
