"""Programs are judged beside the run: several at once, once each, and nothing stays behind."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import Any

import pytest
from code_runs import completion, inside_of, item_of, nothing_left, this_sandbox
from engine import PATIENCE, until

from qualeval import code_workers
from qualeval.code_workers import CodeWorkers, sandbox_for, verdict_of, workers_to_check
from qualeval.errors import NoSandboxError, SandboxError
from qualeval.records import Verdict
from qualeval.sandbox import Limits, Ran, Sandbox, ladder
from qualeval.sandbox.canaries import Canary
from qualeval.tasks import TASKS

TASK = TASKS["lcb"]

TWICE = "print(int(input()) * 2)"
THRICE = "print(int(input()) * 3)"
ENDLESS = "import time\nwhile True:\n    time.sleep(1)"
TO_BE_KILLED = f"{TWICE}  # but not the first time"
PATIENT = Limits(cpu_seconds=30, wall_seconds=2 * PATIENCE)


@dataclass
class Judge:
    """Takes the place of every sandbox, and knows who is inside at one moment."""

    on_run: Callable[[], object] = lambda: None
    most: int = 0
    runs: int = 0
    by_thread: dict[int, set[int]] = field(default_factory=dict)
    _inside: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, sandbox: Sandbox, code: str, stdin: bytes, limits: Limits) -> Ran:
        with self._lock:
            self.runs += 1
            self._inside += 1
            self.most = max(self.most, self._inside)
            self.by_thread.setdefault(threading.get_ident(), set()).add(id(sandbox))
        try:
            self.on_run()
        finally:
            with self._lock:
                self._inside -= 1
        return Ran("exited", 0, None, b"", b"", 0.01, 0.01, 1 << 20)

    def inside(self) -> int:
        return self._inside


def with_cores(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """A machine with so many cores, and memory for as many programs."""
    monkeypatch.setattr(code_workers, "cores", lambda: count)
    monkeypatch.setattr(code_workers, "most_at_once", lambda: count)


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Judge:
    """No program runs: what would be one does what the test wants. Four cores.

    Every answer is one run: the one that should say whether it compiles, and says nothing.
    """
    made = Judge()
    monkeypatch.setattr(Sandbox, "run", lambda self, *of: made.run(self, *of))
    with_cores(monkeypatch, 4)
    return made


@pytest.fixture
def log() -> list[str]:
    return []


@pytest.fixture
def workers(log: list[str]) -> Iterator[CodeWorkers]:
    with nothing_left(), CodeWorkers(this_sandbox(), log.append) as made:
        yield made


def begin(workers: CodeWorkers, code: str = TWICE, id: object = "a", **options: Any) -> Any:
    return workers.begin(TASK, item_of(id), completion(code), 0, **options)


def begin_many(workers: CodeWorkers, count: int, code: str = TWICE) -> list[Any]:
    """So many items with one test each: one run of a program, or what stands for it."""
    items = [item_of(number, ("1", "2")) for number in range(count)]
    return [workers.begin(TASK, item, completion(code), 0) for item in items]


# Several at once


def test_programs_are_judged_and_told_by_their_verdict(workers: CodeWorkers) -> None:
    right, wrong = begin(workers), begin(workers, THRICE, "b")
    assert right.result().right and right.result().rule == "accepted"
    assert not wrong.result().right and wrong.result().rule == "wrong_answer"
    assert wrong.result().details["failed_test"] == 0


def test_one_core_is_left_free_until_nothing_else_needs_it(
    judge: Judge, workers: CodeWorkers
) -> None:
    """Three of four cores at once and never more; all four after `use_all_cores`."""
    three = threading.Barrier(3)
    judge.on_run = lambda: three.wait(PATIENCE)
    assert all(future.result() for future in begin_many(workers, 12))
    assert judge.most == 3
    workers.use_all_cores()
    four = threading.Barrier(4)
    judge.on_run = lambda: four.wait(PATIENCE)
    items = [item_of(f"more {number}", ("1", "2")) for number in range(8)]
    futures = [workers.begin(TASK, item, completion(TWICE), 0) for item in items]
    assert all(future.result() for future in futures)
    assert judge.most == 4


def test_answers_that_wait_begin_when_all_cores_are_free(
    judge: Judge, workers: CodeWorkers
) -> None:
    """The fourth begins beside three that still run: nobody waits for one of them to end."""
    go_on = threading.Event()
    judge.on_run = lambda: go_on.wait(PATIENCE)
    begin_many(workers, 4)
    until(lambda: judge.inside() == 3, "three run")
    workers.use_all_cores()
    until(lambda: judge.inside() == 4, "four run")
    go_on.set()


def test_one_core_is_enough(judge: Judge, monkeypatch: pytest.MonkeyPatch, log: list[str]) -> None:
    """On a machine with a single core programs run one after another, from first to last."""
    with_cores(monkeypatch, 1)
    with CodeWorkers(this_sandbox(), log.append) as workers:
        first = begin_many(workers, 3)
        workers.use_all_cores()
        assert all(future.result() for future in [*first, begin(workers, id="later")])
    assert (judge.most, judge.runs) == (1, 4)


def test_each_thread_has_a_sandbox_of_its_own(judge: Judge, workers: CodeWorkers) -> None:
    three = threading.Barrier(3)
    judge.on_run = lambda: three.wait(PATIENCE)
    for future in begin_many(workers, 12):
        future.result()
    assert all(len(sandboxes) == 1 for sandboxes in judge.by_thread.values())
    assert len(set.union(*judge.by_thread.values())) == len(judge.by_thread) >= 3


def test_real_programs_overlap_in_real_sandboxes(
    monkeypatch: pytest.MonkeyPatch, log: list[str]
) -> None:
    """Two are past the start of their sandbox before either ends."""
    both, original = threading.Barrier(2), Sandbox.run

    def run(self: Sandbox, code: str, stdin: bytes, limits: Limits) -> Ran:
        ran = original(self, code, stdin, limits)
        assert self.pid
        both.wait(PATIENCE)
        return ran

    monkeypatch.setattr(Sandbox, "run", run)
    with_cores(monkeypatch, 2)
    with nothing_left(), CodeWorkers(this_sandbox(), log.append) as workers:
        workers.use_all_cores()
        assert all(future.result().right for future in begin_many(workers, 2))


# Once each


def test_verdict_asked_for_twice_is_judged_once(judge: Judge, workers: CodeWorkers) -> None:
    """By part, id as text and repeat; another repeat is another answer."""
    item = item_of(7, ("1", "2"))
    first = workers.begin(TASK, item, completion(TWICE), 0)
    assert workers.begin(TASK, item, completion(TWICE), 0) is first
    first.result()
    assert judge.runs == 1
    assert workers.begin(TASK, item, completion(TWICE), 0) is first
    assert workers.begin(TASK, item, completion(TWICE), 1).result() is not first.result()
    assert judge.runs == 2


def test_told_tells_each_verdict_once_and_only_what_was_to_be_told(workers: CodeWorkers) -> None:
    quiet = begin(workers, id="quiet")
    loud = [begin(workers, TWICE, "loud", tell=True), begin(workers, THRICE, "other", tell=True)]
    for future in (quiet, *loud):
        future.result()
    assert sorted((part, told_right(verdict)) for part, verdict in workers.told()) == [
        ("lcb", False),
        ("lcb", True),
    ]
    assert list(workers.told()) == list(workers.told(wait=True)) == []


def told_right(verdict: Verdict | None) -> bool:
    assert verdict is not None
    return verdict.right


def test_told_waits_only_when_asked_to(judge: Judge, workers: CodeWorkers) -> None:
    go_on = threading.Event()
    judge.on_run = lambda: go_on.wait(PATIENCE)
    begin(workers, tell=True)
    assert list(workers.told()) == []
    go_on.set()
    [(part, verdict)] = workers.told(wait=True)
    assert part == "lcb" and verdict is not None


# A sandbox that fails


def kill_in_the_middle(monkeypatch: pytest.MonkeyPatch, times: int) -> list[int]:
    """End everything inside a sandbox by SIGKILL while TO_BE_KILLED runs, so many times. A program
    without end stands in for it there: it is sure to be seen, and ends by nothing else.
    """
    original, killed = Sandbox.run, list[int]()

    def run(self: Sandbox, code: str, stdin: bytes, limits: Limits) -> Ran:
        if code != TO_BE_KILLED or len(killed) >= times:
            return original(self, code, stdin, limits)
        original(self, "", b"", limits)  # it is warm: what is inside beside a program is known
        idle = inside_of(self)

        def kill() -> None:
            until(lambda: inside_of(self) - idle, "the program runs")
            for pid in inside_of(self):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

        killed.append(self.pid or 0)
        killer = threading.Thread(target=kill)
        killer.start()
        try:
            return original(self, ENDLESS, stdin, PATIENT)
        finally:
            killer.join()

    monkeypatch.setattr(Sandbox, "run", run)
    return killed


def test_sandbox_killed_in_the_middle_of_a_test_changes_no_verdict(
    monkeypatch: pytest.MonkeyPatch, workers: CodeWorkers, log: list[str]
) -> None:
    """One line in the log, and the test is run again in a new sandbox."""
    unbroken = begin(workers, TO_BE_KILLED, "unbroken").result()
    killed = kill_in_the_middle(monkeypatch, 1)
    broken = begin(workers, TO_BE_KILLED, "broken").result()
    assert len(killed) == 1
    assert [line for line in log if "tried once more" in line] == log and len(log) == 1
    assert log[0].startswith("sandbox (")
    for verdict in (broken, unbroken):
        assert (verdict.right, verdict.rule, verdict.details["tests"]) == (True, "accepted", 2)
    assert (broken.reason, broken.extracted) == (unbroken.reason, unbroken.extracted)


def test_sandbox_that_does_not_start_is_tried_once_more(
    monkeypatch: pytest.MonkeyPatch, workers: CodeWorkers, log: list[str]
) -> None:
    start, failed = Sandbox._start, list[Sandbox]()

    def fails_once(self: Sandbox) -> None:
        if not failed:
            failed.append(self)
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        start(self)

    monkeypatch.setattr(Sandbox, "_start", fails_once)
    assert begin(workers, TWICE).result().right
    assert 1 == len(failed) == len(log)
    assert "Resource temporarily unavailable; tried once more" in log[0]


def test_sandbox_killed_twice_gives_no_verdict(
    monkeypatch: pytest.MonkeyPatch, workers: CodeWorkers, log: list[str]
) -> None:
    """An error of ours, told as None; and the next program finds a sandbox that works."""
    kill_in_the_middle(monkeypatch, 2)
    future = begin(workers, TO_BE_KILLED, tell=True)
    with pytest.raises(SandboxError, match="sandbox"):
        future.result()
    assert verdict_of(future) is None
    assert list(workers.told()) == [("lcb", None)]
    assert len(log) == 1
    assert begin(workers, TWICE, "next").result().right


def test_program_that_kills_its_own_processes_is_no_failure_of_the_sandbox(
    workers: CodeWorkers, log: list[str]
) -> None:
    """Else a model could choose to have no verdict."""
    suicide = "import os, signal\nfor pid in (1, os.getppid(), -1, os.getpid()):\n"
    suicide += "    try:\n        os.kill(pid, signal.SIGKILL)\n    except OSError:\n        pass\n"
    verdict = begin(workers, suicide).result()
    assert not verdict.right and log == []


# The end


def test_stop_ends_what_runs_and_cancels_what_waits(
    monkeypatch: pytest.MonkeyPatch, log: list[str]
) -> None:
    with_cores(monkeypatch, 2)
    with nothing_left(), CodeWorkers(this_sandbox(), log.append) as workers:
        workers.use_all_cores()
        futures = begin_many(workers, 6, ENDLESS)
        until(
            lambda: sum(len(inside_of(s)) > 3 for s in list(workers._sandboxes)) == 2,
            "two programs run",
        )
        workers.stop()
        for future in futures:
            with pytest.raises(CancelledError):
                future.result(timeout=PATIENCE)
            assert verdict_of(future) is None
    assert log == [], "what is ended on purpose is not tried once more"


def test_nothing_begins_after_stop(workers: CodeWorkers) -> None:
    """What was judged before keeps its verdict."""
    before = begin(workers, id="before")
    assert before.result().right
    workers.stop()
    assert begin(workers, id="before") is before
    late = begin(workers, id="after", tell=True)
    assert late.cancelled() and verdict_of(late) is None
    assert list(workers.told(wait=True)) == []
    workers.stop()


def test_error_on_the_way_out_leaves_nothing_running(log: list[str]) -> None:
    """Ctrl-C while programs run: the block ends at once, whatever they do."""
    with (
        nothing_left(),
        pytest.raises(KeyboardInterrupt),
        CodeWorkers(this_sandbox(), log.append) as workers,
    ):
        begin(workers, ENDLESS)
        until(lambda: any(len(inside_of(s)) > 3 for s in list(workers._sandboxes)), "it runs")
        raise KeyboardInterrupt


def test_a_worker_that_never_judged_leaves_nothing() -> None:
    with nothing_left(), CodeWorkers(this_sandbox(), lambda message: None):
        pass


# Which sandbox


def test_no_part_that_runs_programs_needs_no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    no_sandbox(monkeypatch)
    assert sandbox_for(["mmlupro", "gpqa"]) is None
    unchecked: list[str] = []
    with workers_to_check(["mmlupro"], unchecked) as workers:
        assert workers is None and unchecked == []


def test_machine_without_a_sandbox_refuses_to_run_and_says_what_it_could_not_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    no_sandbox(monkeypatch)
    with pytest.raises(NoSandboxError, match="--parts"):
        sandbox_for(["lcb"])
    unchecked: list[str] = []
    with workers_to_check(["mmlupro", "lcb"], unchecked) as workers:
        assert workers is None
    [why] = unchecked
    assert "part 'lcb'" in why and "were not run again" in why and "\n" not in why


def no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which the first attack succeeds, whatever the rung."""
    monkeypatch.setattr(ladder, "attack", lambda sandbox: iter([Canary("network", False, "none")]))


@pytest.mark.parametrize(
    ("told", "cores", "most"),
    [
        ("MemTotal: 9 kB\nMemAvailable: 67108864 kB\n", 8, 8),
        ("MemAvailable: 5242880 kB\n", 8, 2),
        ("MemAvailable: 1048576 kB\n", 8, 1),
        ("MemFree: 67108864 kB\n", 8, 1),
        (None, 8, 1),
    ],
)
def test_programs_side_by_side_are_as_many_as_memory_goes_for(
    told: str | None, cores: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model server may leave little: two programs of 2 GiB fit into 5."""

    class Meminfo:
        def __init__(self, path: str) -> None:
            assert path == "/proc/meminfo"

        def read_text(self) -> str:
            if told is None:
                raise PermissionError
            return told

    monkeypatch.setattr(code_workers, "Path", Meminfo)
    monkeypatch.setattr(code_workers, "cores", lambda: cores)
    assert code_workers.most_at_once() == most
