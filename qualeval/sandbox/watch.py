"""What the processes of a program use, read from /proc while it runs."""

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from qualeval.sandbox.values import Limits, RunStatus

PROC = Path("/proc")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

KERNEL_LISTS_CHILDREN = os.path.exists(PROC / f"self/task/{os.getpid()}/children")
"""Not every kernel is built to; then all processes are looked at."""

LONGEST_TAIL = 0.25
"""Seconds that a process which is gone is taken to have run after it was last seen, at most."""

STARVED = 5
"""However long a program waits for a core, this many wall limits are the end."""


@dataclass(frozen=True, slots=True)
class Used:
    """The CPU of a process and of the children that it has waited for, in seconds, and whether it
    is running or would like to.
    """

    cpu_seconds: float
    running: bool


@dataclass(slots=True)
class Watch:
    """Watches everything below `zygote` from the moment `started` (of `monotonic`)."""

    zygote: int
    limits: Limits
    started: float
    cpu_seconds: float = field(default=0.0, init=False)
    memory_bytes: int = field(default=0, init=False)
    seconds_without_a_core: float = field(default=0.0, init=False)
    seconds_of_a_look: float = field(default=0.0, init=False)
    _looked: float | None = field(default=None, init=False)
    _used: dict[int, Used] = field(default_factory=dict, init=False)
    _lost: float = field(default=0.0, init=False)

    def broken_limit(self) -> RunStatus | None:
        """The limit that the program is beyond at this moment, if any."""
        before = monotonic()
        processes = list(descendants(self.zygote))
        self._count_cpu(processes, before)
        self.memory_bytes = max(self.memory_bytes, self._memory(processes))
        # Remembered, as all that is measured: a process that has just ended waited for nothing.
        waited = max(map(seconds_waited, processes), default=0.0)
        self.seconds_without_a_core = max(self.seconds_without_a_core, waited)
        if self.cpu_seconds > self.limits.cpu_seconds:
            return "cpu_limit"
        if self.memory_bytes > self.limits.memory_bytes:
            return "memory_limit"
        wall = before - self.started
        if (
            wall - self.seconds_without_a_core > self.limits.wall_seconds
            or wall > STARVED * self.limits.wall_seconds
        ):
            return "wall_limit"
        self.seconds_of_a_look = monotonic() - before
        return None

    def _count_cpu(self, processes: list[int], moment: float) -> None:
        """Add up the CPU of all processes, those included that nobody waited for: a process that
        ignores SIGCHLD has no times of its children. One that was running at the last look and is
        gone is taken to have run until now. When no more than an init is left, it knows them all.
        """
        now = {pid: used for pid in processes if (used := used_by(pid)) is not None}
        since = min(moment - self._looked, LONGEST_TAIL) if self._looked is not None else 0.0
        gone = [used for pid, used in self._used.items() if pid not in now]
        most = sum(used.cpu_seconds + since * used.running for used in gone)
        grown = sum(
            used.cpu_seconds - self._used[pid].cpu_seconds
            for pid, used in now.items()
            if pid in self._used
        )
        if len(now) > 1:
            self._lost += max(0.0, most - max(0.0, grown))
        self._used, self._looked = now, moment
        total = sum(used.cpu_seconds for used in now.values()) + self._lost
        self.cpu_seconds = max(self.cpu_seconds, total)

    def _memory(self, processes: list[int]) -> int:
        """Bytes in memory. Pages that processes share are counted once where it could matter."""
        resident = sum(map(resident_bytes, processes))
        if resident <= self.limits.memory_bytes:
            return resident
        return sum(map(proportional_bytes, processes))


def descendants(root: int) -> Iterator[int]:
    """Process ids of all that `root` started, and what those started, as they are now."""
    known = None if KERNEL_LISTS_CHILDREN else children_by_parent()
    waiting = [root]
    while waiting:
        parent = waiting.pop()
        children = list(children_of(parent)) if known is None else known.get(parent, [])
        yield from children
        waiting += children


def children_by_parent() -> dict[int, list[int]]:
    """The children of every process, as all processes name their parents."""
    children: dict[int, list[int]] = {}
    for name in os.listdir(PROC):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                parent = int(_read(f"{name}/stat").rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(name))
    return children


def children_of(pid: int) -> Iterator[int]:
    """Process ids of the children of all threads of a process."""
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                yield from map(int, _read(f"{pid}/task/{thread}/children").split())


def _read(name: str) -> bytes:
    with open(PROC / name, "rb") as file:
        return file.read()


def used_by(pid: int) -> Used | None:
    """What a process has used; None when it is gone."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        # The name in parentheses may hold anything.
        fields = _read(f"{pid}/stat").rpartition(b")")[2].split()
        return Used(sum(map(int, fields[11:15])) / TICKS_PER_SECOND, running=fields[0] == b"R")
    return None


_MEMORY = re.compile(rb"^(VmRSS|VmPTE):\s*(\d+) kB$", re.MULTILINE)


def _memory_told(pid: int) -> dict[bytes, int]:
    """KiB of a process, and of the kernel's tables of its pages; of one whose first thread has left
    what its other threads tell. Empty when it is gone.
    """
    with contextlib.suppress(OSError):
        if told := _MEMORY.findall(_read(f"{pid}/status")):
            return {name: int(kib) for name, kib in told}
        for thread in os.listdir(PROC / f"{pid}/task"):
            with contextlib.suppress(OSError):
                if told := _MEMORY.findall(_read(f"{pid}/task/{thread}/status")):
                    return {name: int(kib) for name, kib in told}
    return {}


def resident_bytes(pid: int) -> int:
    """Memory of a process, shared pages and page tables included; 0 when it is gone."""
    return sum(_memory_told(pid).values()) * 1024


def proportional_bytes(pid: int) -> int:
    """Memory of a process, each page divided among those that share it, and its page tables.

    All of it where the kernel does not tell.
    """
    with contextlib.suppress(OSError, ValueError):
        for line in _read(f"{pid}/smaps_rollup").splitlines():
            if line.startswith(b"Pss:"):
                tables = _memory_told(pid).get(b"VmPTE", 0)
                return (int(line.split()[1]) + tables) * 1024
    return resident_bytes(pid)


def seconds_waited(pid: int) -> float:
    """How long the thread of a process that waited longest was ready to run and had no core."""
    waited = [0]
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                waited.append(int(_read(f"{pid}/task/{thread}/schedstat").split()[1]))
    return max(waited) / 1e9


def tasks_of_user(pid: int) -> int:
    """Threads of all processes of the user that `pid` runs as: what RLIMIT_NPROC counts."""
    with contextlib.suppress(OSError):
        user = os.stat(PROC / str(pid)).st_uid
        tasks = 0
        for entry in os.scandir(PROC):
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and entry.stat().st_uid == user:
                    tasks += len(os.listdir(f"{entry.path}/task"))
        return tasks
    return 0


def tasks_are_counted_by_namespace() -> bool:
    """Whether RLIMIT_NPROC counts the tasks of a user namespace apart: since Linux 5.14."""
    release = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return release is not None and (int(release[1]), int(release[2])) >= (5, 14)
