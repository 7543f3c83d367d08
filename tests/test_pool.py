"""The request pool, in virtual time: nothing here waits, and every moment is exact."""

import asyncio
import heapq
import tracemalloc
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qualeval import pool
from qualeval.pool import InFlightMeter, PostponedError, run_pool

FEW = settings(max_examples=60)

Value = TypeVar("Value")


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer as soon as nothing else is left to do."""

    moment = 0.0
    _scheduled: list[asyncio.TimerHandle]  # as asyncio has them, for all loops of its own
    _ready: deque[asyncio.Handle]

    def time(self) -> float:
        return self.moment

    def _run_once(self) -> None:
        timers = [timer.when() for timer in self._scheduled if not timer.cancelled()]
        if not self._ready and timers:
            self.moment = max(self.moment, min(timers))
        super()._run_once()  # type: ignore[misc]


def in_virtual_time(main: Callable[[], Awaitable[Value]]) -> Value:
    return anyio.run(main, backend_options={"loop_factory": VirtualTimeLoop})


@dataclass
class Shop:
    """Workers that take their time, and a record of all they did."""

    seconds: Sequence[float]
    postponed: dict[int, list[float]] = field(default_factory=dict)
    started: list[tuple[float, int]] = field(default_factory=list)
    ended: list[tuple[float, int]] = field(default_factory=list)
    done: list[tuple[int, str]] = field(default_factory=list)
    pulled: int = 0
    most_open: int = 0
    busy: int = 0
    most_busy: int = 0

    def work(self) -> Iterator[int]:
        for number in range(len(self.seconds)):
            self.pulled += 1
            self.most_open = max(self.most_open, self.pulled - len(self.done))
            yield number

    async def worker(self, number: int) -> str:
        self.started.append((anyio.current_time(), number))
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        await anyio.sleep(self.seconds[number])
        self.busy -= 1
        self.ended.append((anyio.current_time(), number))
        if waits := self.postponed.get(number):
            raise PostponedError(waits.pop(0))
        return f"result {number}"

    def run(self, slots: int) -> "Shop":
        async def main() -> None:
            await run_pool([self.worker] * slots, self.work(), self.note)

        in_virtual_time(main)
        return self

    def note(self, number: int, result: str) -> None:
        self.done.append((number, result))


def list_scheduling(seconds: Sequence[float], slots: int) -> float:
    """When an ideal pool is done: each piece, in order, goes to the slot that is free first."""
    free = [0.0] * slots
    for duration in seconds:
        heapq.heappush(free, heapq.heappop(free) + duration)
    return max(free)


# Whole seconds, so that sums are exact.
SECONDS = st.lists(st.integers(0, 20).map(float), max_size=40)


@FEW
@given(SECONDS, st.integers(1, 9))
def test_every_piece_is_done_once_and_started_in_order(seconds: list[float], slots: int) -> None:
    """The order of the list is kept whatever the answers take."""
    shop = Shop(seconds).run(slots)
    everything = list(range(len(seconds)))
    assert everything == [number for _, number in shop.started]
    assert [(number, f"result {number}") for number in everything] == sorted(shop.done)


@FEW
@given(SECONDS, st.integers(1, 9))
def test_slots_are_full_from_first_to_last(seconds: list[float], slots: int) -> None:
    """net-03: never more in flight than slots, and done as early as an ideal pool."""
    shop = Shop(seconds).run(slots)
    assert min(slots, len(seconds)) == shop.most_busy
    assert list_scheduling(seconds, slots) == max((end for end, _ in shop.ended), default=0.0)


@FEW
@given(SECONDS, st.integers(1, 9))
def test_nothing_is_taken_ahead_of_its_slot(seconds: list[float], slots: int) -> None:
    """Work is made one piece at a time, when a slot is free for it."""
    assert slots >= Shop(seconds).run(slots).most_open


@FEW
@given(
    seconds=SECONDS,
    slots=st.integers(1, 9),
    postponed=st.dictionaries(
        st.integers(0, 39), st.lists(st.integers(-1, 30).map(float), max_size=4), max_size=40
    ),
)
def test_postponed_pieces_are_all_done_once_in_the_end(
    seconds: list[float], slots: int, postponed: dict[int, list[float]]
) -> None:
    """Each piece is tried once more for each time it was put off, never beside itself."""
    tries = {n: 1 + len(postponed.get(n, [])) for n in range(len(seconds))}
    shop = Shop(seconds, {n: list(waits) for n, waits in postponed.items()}).run(slots)
    assert list(range(len(seconds))) == sorted(number for number, _ in shop.done)
    assert tries == Counter(number for _, number in shop.started)
    assert slots >= shop.most_busy


@settings(max_examples=25)
@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 100).map(float))
def test_number_of_waiting_pieces_is_bounded(count: int, slots: int, wait: float) -> None:
    """When a server puts everything off, the pool does not take in the whole list."""
    shop = Shop([1.0] * 80, {n: [wait] * 3 for n in range(count, 80)}).run(slots)
    assert 2 * max(slots, pool.WAITING) > shop.most_open
    assert 80 == len(shop.done)


def test_postponed_piece_gives_its_slot_away_and_goes_first_once_due() -> None:
    """A wait for one item costs the server nothing."""
    shop = Shop([1.0] * 6, {0: [3.5]}).run(1)
    assert [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 0), (6, 5)] == shop.started


def test_last_piece_is_waited_for_and_not_before_its_time() -> None:
    """With nothing else to do, the pool waits for the piece that was put off."""
    shop = Shop([1.0], {0: [10.0, 5.0]}).run(3)
    assert [(0, 0), (11, 0), (17, 0)] == shop.started
    assert [(0, "result 0")] == shop.done


def test_pieces_put_off_to_the_same_moment_keep_their_order() -> None:
    """First put off, first tried again."""
    shop = Shop([1.0] * 3, {0: [9.0], 1: [9.0], 2: [9.0]}).run(3)
    assert [0, 1, 2, 0, 1, 2] == [number for _, number in shop.started]


def test_piece_put_off_for_less_goes_before_one_put_off_earlier() -> None:
    """The nearer moment counts, and a sleeping worker notices it."""
    shop = Shop([1.0, 2.0], {0: [50.0], 1: [3.0]}).run(2)
    assert [(0, 0), (0, 1), (5, 1), (51, 0)] == shop.started


def test_wait_is_measured_by_the_given_clock() -> None:
    """Clocks are passed in: one that runs twice as fast halves the wait."""
    shop = Shop([1.0], {0: [10.0]})

    async def main() -> None:
        loop = asyncio.get_running_loop()
        await run_pool([shop.worker], shop.work(), shop.note, lambda: 2 * loop.time())

    in_virtual_time(main)
    (moment, number), (later, _) = shop.started
    assert (0, 0) == (moment, number)
    assert 6 <= later <= 11


@pytest.mark.parametrize("slots", [0, 1, 4])
def test_no_work_is_done_at_once(slots: int) -> None:
    """An empty list ends."""
    assert [] == Shop([]).run(slots).done


@pytest.mark.parametrize("slots", [1, 4])
def test_work_without_a_wait_between_is_done(slots: int) -> None:
    """Workers that never yield."""
    done: list[int] = []

    async def worker(number: int) -> None:
        pass

    async def main() -> None:
        await run_pool([worker] * slots, iter(range(1000)), lambda number, _: done.append(number))

    in_virtual_time(main)
    assert list(range(1000)) == sorted(done)


# Errors


class BoomError(Exception):
    """An error of ours."""


def failing(where: str, slots: int = 3) -> tuple[list[str], list[int], BaseException]:
    """What was cancelled, what was done, and what came out when `where` fails at piece 2."""
    cancelled: list[str] = []
    done: list[int] = []
    boom = BoomError()

    async def worker(number: int) -> int:
        try:
            await anyio.sleep(1.0 if number == 2 else 10.0)
        except asyncio.CancelledError:
            cancelled.append(f"worker {number}")
            raise
        if where == "worker":
            raise boom
        return number

    def work() -> Iterator[int]:
        yield from range(3)
        if where == "work":
            raise boom
        yield from range(3, 9)

    def note(number: int, _: int) -> None:
        if where == "done":
            raise boom
        done.append(number)

    async def main() -> None:
        await run_pool([worker] * slots, work(), note)

    with pytest.raises(BoomError) as caught:
        in_virtual_time(main)
    assert boom is caught.value
    return cancelled, done, caught.value


@pytest.mark.parametrize("where", ["worker", "work", "done"])
def test_first_exception_ends_the_pool_and_is_raised_as_it_is(where: str) -> None:
    """Not in a group; the others are cancelled in the middle of their pieces."""
    cancelled, done, error = failing(where)
    assert ["worker 0", "worker 1"] == sorted(cancelled)
    assert ([2] if where == "work" else []) == done
    assert error.__cause__ is None


def test_exception_of_a_cancelled_worker_does_not_hide_the_first() -> None:
    """What went wrong first is what is told."""

    async def worker(number: int) -> None:
        try:
            await anyio.sleep(1.0 + number)
        except asyncio.CancelledError:
            raise ValueError("while cancelled") from None
        raise BoomError

    async def main() -> None:
        await run_pool([worker] * 3, iter(range(9)), lambda *_: None)

    with pytest.raises(BoomError):
        in_virtual_time(main)


def test_pool_that_is_cancelled_from_outside_stops() -> None:
    """Ctrl-C: pieces in flight end, no further piece is started."""
    shop = Shop([2.0] * 9)

    async def main() -> bool:
        with anyio.move_on_after(3.0) as scope:
            await run_pool([shop.worker] * 2, shop.work(), shop.note)
        return scope.cancelled_caught

    assert in_virtual_time(main)
    assert [0, 1] == [number for number, _ in shop.done]
    assert 4 == len(shop.started)


def test_pool_that_waits_for_a_postponed_piece_can_be_cancelled() -> None:
    """Also where nothing is in flight."""
    shop = Shop([1.0], {0: [1000.0]})

    async def main() -> bool:
        with anyio.move_on_after(3.0) as scope:
            await run_pool([shop.worker] * 2, shop.work(), shop.note)
        return scope.cancelled_caught

    assert in_virtual_time(main)
    assert 1 == len(shop.started)


# Memory


def test_memory_does_not_grow_with_the_amount_of_work() -> None:
    """DESIGN 6: neither pieces nor results are kept."""

    def peak(count: int) -> int:
        async def worker(piece: Any) -> bytes:
            await anyio.sleep(0)
            if piece[0] % 10 == 0 and not piece[1]:
                piece[1].append(1)
                raise PostponedError(0.5)
            return bytes(1000)

        async def main() -> None:
            work: Iterator[Any] = ((number, [], bytes(1000)) for number in range(count))
            await run_pool([worker] * 8, work, lambda *_: None)

        tracemalloc.start()
        try:
            in_virtual_time(main)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(100)
    assert peak(4000) < peak(200) + 200_000


# The meter


def meter_of(*changes: tuple[float, int]) -> InFlightMeter:
    moments = iter([moment for moment, _ in changes])
    meter = InFlightMeter(lambda: next(moments))
    for _, change in changes:
        (meter.enter if change > 0 else meter.leave)()
    return meter


def test_mean_in_flight_is_weighted_by_time() -> None:
    """From the first start to the last end: 1 for 2 s, 2 for 1 s, 0 for 1 s, 1 for 4 s."""
    meter = meter_of((10, 1), (12, 1), (13, -1), (13, -1), (14, 1), (18, -1))
    assert (8 / 8, 2) == (meter.mean, meter.most)


def test_nothing_in_flight_has_mean_zero() -> None:
    """No division by the time that did not pass."""
    assert (0.0, 0) == (meter_of().mean, meter_of().most)


def test_answers_that_took_no_time_have_their_most_as_mean() -> None:
    """A clock that did not tick."""
    meter = meter_of((5, 1), (5, 1), (5, -1), (5, -1))
    assert (2.0, 2) == (meter.mean, meter.most)
