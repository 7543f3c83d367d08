"""What goes into a sandbox and what comes out: values only; nothing here starts a process."""

from dataclasses import dataclass
from typing import Literal, Protocol

MIB = 1024**2

RunStatus = Literal["exited", "signaled", "cpu_limit", "wall_limit", "memory_limit", "output_limit"]
"""How a program ended: by itself, by a signal that nobody of ours sent, or by a limit."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run of a program may use.

    `cpu_seconds` counts the CPU of all its processes together. `wall_seconds` leaves out the time
    that it waited for a core, so that a busy machine changes no verdict; when it is not given it is
    twice `cpu_seconds`. Raises ValueError for a limit of 0 or less. `memory_bytes` is the
    memory resident at once in all its processes, `output_bytes` what it may write to each of
    stdout, stderr and any file.
    """

    cpu_seconds: float = 6.0
    wall_seconds: float = 0.0
    memory_bytes: int = 2048 * MIB
    output_bytes: int = 32 * MIB
    processes: int = 32

    def __post_init__(self) -> None:
        if not self.wall_seconds:
            object.__setattr__(self, "wall_seconds", 2 * self.cpu_seconds)
        least = min(self.cpu_seconds, self.memory_bytes, self.output_bytes, self.processes)
        if min(least, self.wall_seconds) <= 0:
            raise ValueError(f"limits must be more than 0: {self}")


@dataclass(frozen=True, slots=True)
class Ran:
    """What a program did.

    `exit_code` is given when it exited, `signal` when one ended it. `stdout` is everything that it
    wrote there, at most the limit, and empty at `output_limit`; `stderr` is the last 4 KiB. Times
    are seconds, `cpu_seconds` and `max_rss_bytes` over all of its processes. `waited_seconds` is
    the part of `wall_seconds` in which it wanted a core and had none, as far as that was seen.
    """

    status: RunStatus
    exit_code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    cpu_seconds: float
    wall_seconds: float
    max_rss_bytes: int
    waited_seconds: float = 0.0


class RunCode(Protocol):
    """Runs a Python program as `__main__` in a process of its own, nothing of ours within reach.

    `code` is the source, `stdin` what its file descriptor 0 holds. Raises SandboxError when the
    sandbox itself fails, whatever the program did.
    """

    def __call__(self, code: str, stdin: bytes, limits: Limits) -> Ran:
        """How it ran."""
