"""What some work costs, told so that it is true on a machine of any speed."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

TIMES = 4
MOST = 9
"""Four times the size may cost nine times the CPU: a square would cost sixteen times."""

TRIES = 3
"""Neighbours cost CPU too, through caches and cores that they share; a square stays one."""

MOMENT = 0.05
"""Seconds below which nothing is measured well enough to compare."""


def cpu_seconds(work: Callable[[], object]) -> float:
    start = process_time()
    work()
    return process_time() - start


def usual_seconds(work: Callable[[], object]) -> float:
    """CPU seconds on a usual machine: one that counts to five million in a tenth of a second."""

    def count() -> None:
        for _ in range(5_000_000):
            pass

    before, spent, after = map(cpu_seconds, (count, work, count))
    return spent * 0.2 / (before + after)


def assert_linear(work: Callable[[int], object], size: int) -> None:
    """Fail when `work(size)` costs far more than `work(size // 4)` does, four times over."""
    seen = []
    for _ in range(TRIES):
        small, large = (cpu_seconds(lambda: work(n)) for n in (size // TIMES, size))  # noqa: B023
        if large <= MOST * small + MOMENT:
            return
        seen.append(f"{small:.3f} s, {large:.3f} s")
    raise AssertionError(f"{TIMES} times the size costs more than {MOST} times the CPU: {seen}")
