"""Judges programs beside the run: several at once, each in a sandbox of its own.

While other answers are still being generated one core is left free; afterwards all are used. A
sandbox that fails is tried once more; failing again, it gives no verdict.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Semaphore, local

from qualeval.errors import NoSandboxError, SandboxError
from qualeval.records import Completion, Item, Verdict, key_of
from qualeval.sandbox import Chosen, Limits, Ran, Sandbox, choose_sandbox
from qualeval.tasks import TASKS
from qualeval.tasks.base import Task

Key = tuple[str, str, int]
"""Part, id, repeat."""


def sandbox_for(parts: Iterable[str], *, unsafe: bool = False) -> Chosen | None:
    """What the programs of these parts are run in; None when none of them runs any.

    Raises NoSandboxError.
    """
    if not any(TASKS[part].runs_code for part in parts):
        return None
    return choose_sandbox(unsafe=unsafe)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def most_at_once() -> int:
    """Programs that may run side by side: one a core, as far as memory goes for their limits."""
    available = 0
    with suppress(OSError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        told = dict(line.split(":", 1) for line in lines)
        available = int(told.get("MemAvailable", "0 kB").split()[0]) * 1024
    by_memory = available // Limits().memory_bytes or 1
    return min(cores(), by_memory)


class CodeWorkers:
    """Threads that each own a sandbox. A verdict is asked for once, however often it is wanted."""

    def __init__(self, chosen: Chosen, log: Callable[[str], None]) -> None:
        self.chosen = chosen
        self._log = log
        self._most = most_at_once()
        self._threads = ThreadPoolExecutor(self._most, thread_name_prefix="qualeval-code")
        self._free = Semaphore(max(1, min(self._most, cores() - 1)))
        self._own = local()
        self._sandboxes: list[Sandbox] = []
        self._closed = False
        self._verdicts: dict[Key, Future[Verdict]] = {}
        self._untold: dict[Future[Verdict], str] = {}

    def __enter__(self) -> "CodeWorkers":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def use_all_cores(self) -> None:
        """From now on nothing else needs a core."""
        if self._most == cores() > 1:
            self._free.release()

    def begin(
        self, task: Task, item: Item, completion: Completion, repeat: int, *, tell: bool = False
    ) -> Future[Verdict]:
        """Judge an answer soon. With `tell` the verdict comes up in `told` when it is there.

        The future raises SandboxError when no verdict could be had, CancelledError when the
        workers were stopped before.
        """
        key = (task.name, *key_of(item.id, repeat))
        if key in self._verdicts:
            return self._verdicts[key]
        if self._closed:
            never: Future[Verdict] = Future()
            never.cancel()
            return never
        future = self._verdicts[key] = self._threads.submit(self._judge, task, item, completion)
        if tell:
            self._untold[future] = task.name
        return future

    def told(self, *, wait: bool = False) -> Iterator[tuple[str, Verdict | None]]:
        """(part, verdict) of those to be told that are there and were not told before; None where
        there will be no verdict. With `wait` all of them, as they come.
        """
        done = as_completed(list(self._untold)) if wait else list(self._untold)
        for future in done:
            if future.done() and (part := self._untold.pop(future, None)) is not None:
                yield part, verdict_of(future)

    def stop(self) -> None:
        """Begin nothing more, and end what runs."""
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        for sandbox in list(self._sandboxes):
            sandbox.interrupt()

    def close(self) -> None:
        """Stop, and wait until nothing of ours is left."""
        self.stop()
        self._threads.shutdown(wait=True)
        for sandbox in self._sandboxes:
            sandbox.close()

    def _judge(self, task: Task, item: Item, completion: Completion) -> Verdict:
        with self._free:
            try:
                return task.grade(item, completion, self._run)
            except SandboxError:
                if self._closed:
                    raise CancelledError from None
                raise

    def _run(self, code: str, stdin: bytes, limits: Limits) -> Ran:
        try:
            return self._sandbox().run(code, stdin, limits)
        except SandboxError as error:
            if self._closed:
                raise
            self._log(f"{error}; tried once more")
        return self._sandbox().run(code, stdin, limits)

    def _sandbox(self) -> Sandbox:
        """This thread's own."""
        sandbox: Sandbox | None = getattr(self._own, "sandbox", None)
        if sandbox is None:
            sandbox = self._own.sandbox = self.chosen.sandbox()
            self._sandboxes.append(sandbox)
        if self._closed:  # looked at last: `stop` ends all that it finds in the list
            raise SandboxError("sandbox: the run has ended")
        return sandbox


@contextmanager
def workers_to_check(parts: Iterable[str], unchecked: list[str]) -> Iterator[CodeWorkers | None]:
    """Workers on all cores to judge programs again; None where no part needs them, or where nothing
    on this machine can hold a program: then `unchecked` gets the reason.
    """
    wanted = [part for part in parts if TASKS[part].runs_code]
    try:
        sandbox = sandbox_for(wanted)
    except NoSandboxError as error:
        reason = str(error).partition("\n")[0].rstrip(":")
        unchecked.append(f"part '{', '.join(wanted)}': its programs were not run again: {reason}")
        sandbox = None
    if sandbox is None:
        yield None
        return
    with CodeWorkers(sandbox, lambda message: None) as workers:
        workers.use_all_cores()
        yield workers


def verdict_of(future: Future[Verdict]) -> Verdict | None:
    """The verdict when it is there; None when there is none: the sandbox failed, or was stopped."""
    try:
        return future.result()
    except (SandboxError, CancelledError):
        return None
