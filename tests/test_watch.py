"""What processes use, read from real ones; and the interpreter that a sandbox shows."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from time import monotonic
from types import SimpleNamespace

import pytest

from qualeval.sandbox import interpreter, watch
from qualeval.sandbox.interpreter import PACKAGES, this_interpreter
from qualeval.sandbox.values import MIB, Limits
from qualeval.sandbox.watch import Watch

PATIENCE_SECONDS = 30.0
ROOMY = Limits(cpu_seconds=1e6, wall_seconds=1e6, memory_bytes=1 << 50)
BURN = "import time\nwhile time.process_time() < 0.3: pass\n"
WAIT = "print('ready', flush=True)\nimport sys\nsys.stdin.read()\n"
"""Ends when its standard input is closed, and so with the test."""


@contextmanager
def child(code: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Python process that is there, and gone afterwards with all that it started."""
    command = [sys.executable, "-I", "-S", "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            for pid in (*watch.descendants(process.pid), process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, 9)


def word(process: subprocess.Popen[bytes]) -> str:
    """The next line that a process writes."""
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


def cpu_seconds(pid: int) -> float:
    """Of a process and the children that it waited for; 0 when it is gone."""
    used = watch.used_by(pid)
    return used.cpu_seconds if used is not None else 0.0


def eventually(true: Callable[[], bool]) -> None:
    deadline = monotonic() + PATIENCE_SECONDS
    while not true():
        assert monotonic() < deadline
        threading.Event().wait(0.01)


@pytest.fixture(scope="module")
def gone() -> int:
    """The number of a process that has ended and was waited for."""
    with child("") as process:
        process.wait()
    return process.pid


def test_memory_that_a_process_holds_is_seen() -> None:
    with child(f"x = bytearray(b'x') * (64 << 20)\n{WAIT}") as process:
        assert "ready" == word(process)
        for measure in (watch.resident_bytes, watch.proportional_bytes):
            assert 64 * MIB < measure(process.pid) < 128 * MIB


FORKS = """
import os, sys
held = bytearray(b"x") * (64 << 20)
told, tell = os.pipe()
children = []
for _ in range(3):
    go, start = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(start)
        os.read(go, 1)
        for place in range(0, len(held), 4096):
            held[place] = 1
        os.write(tell, b"x")
        os.read(go, 1)  # until the parent is gone
        os._exit(0)
    children.append(start)
print("shared", flush=True)
sys.stdin.readline()
for start in children:
    os.write(start, b"x")
left = 3
while left:
    left -= len(os.read(told, left))
print("own", flush=True)
sys.stdin.read()
"""


def test_pages_shared_after_a_fork_are_counted_once() -> None:
    limits = Limits(cpu_seconds=1e6, wall_seconds=1e6, memory_bytes=128 * MIB)
    with child(FORKS) as process:
        assert "shared" == word(process)
        shared = Watch(process.pid, limits, monotonic())
        assert 3 == len(list(watch.descendants(process.pid)))
        assert 192 * MIB < sum(map(watch.resident_bytes, watch.descendants(process.pid)))
        assert shared.broken_limit() is None
        assert 0 < shared.memory_bytes < 128 * MIB
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert "own" == word(process)
        assert "memory_limit" == shared.broken_limit()
        assert shared.memory_bytes > 192 * MIB


def test_memory_is_all_counted_where_the_kernel_does_not_tell_what_is_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "PROC", tmp_path)
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "status").write_text("Name:\tVmRSS:\nVmRSS:\t 100 kB\nVmPTE:\t  8 kB\n")
    assert 108 * 1024 == watch.proportional_bytes(7)
    (tmp_path / "7" / "smaps_rollup").write_text("0-1 ---p 0 0:0 0 [rollup]\nRss: 9 kB\n")
    assert 108 * 1024 == watch.proportional_bytes(7)
    (tmp_path / "7" / "smaps_rollup").write_text("Rss: 9 kB\nPss: 4 kB\nPss_Anon: 1 kB\n")
    assert (4 + 8) * 1024 == watch.proportional_bytes(7)


@pytest.mark.parametrize("name", [") R 9 9 9", "a b", "((", "x) Z 1", "\n) S"])
def test_a_process_may_have_any_name(name: str) -> None:
    named = f"import ctypes\nctypes.CDLL(None).prctl(15, {name.encode()!r}, 0, 0, 0)\n"
    with child(named + BURN + WAIT) as process:
        assert "ready" == word(process)
        assert name.encode() in Path(f"/proc/{process.pid}/stat").read_bytes()
        assert 0.2 < cpu_seconds(process.pid) < PATIENCE_SECONDS


def test_children_that_were_waited_for_count_as_their_parent() -> None:
    code = f"import os\nif os.fork() == 0:\n  exec({BURN!r})\n  os._exit(0)\nos.wait()\n{WAIT}"
    with child(code) as process:
        assert "ready" == word(process)
        assert [] == list(watch.children_of(process.pid))
        assert 0.2 < cpu_seconds(process.pid) < PATIENCE_SECONDS


def test_of_a_process_that_is_gone_there_is_nothing(gone: int) -> None:
    assert [] == list(watch.children_of(gone))
    assert [] == list(watch.descendants(gone))
    assert 0 == cpu_seconds(gone)
    assert 0 == watch.resident_bytes(gone)
    assert 0 == watch.proportional_bytes(gone)
    assert 0 == watch.seconds_waited(gone)
    assert 0 == watch.tasks_of_user(gone)
    watched = Watch(gone, ROOMY, monotonic())
    assert watched.broken_limit() is None
    assert (0, 0) == (watched.cpu_seconds, watched.memory_bytes)


def test_a_process_that_was_not_waited_for_has_no_memory() -> None:
    with child("print('ready', flush=True)") as process:
        assert "ready" == word(process)
        eventually(lambda: b") Z " in Path(f"/proc/{process.pid}/stat").read_bytes())
        assert 0 == watch.resident_bytes(process.pid)
        assert 0 == watch.proportional_bytes(process.pid)


FORKS_IN_A_THREAD = f"""
import os, threading
def work():
    child = os.fork()
    if child == 0:
        grandchild = os.fork()
        if grandchild == 0:
            import sys; sys.stdin.read()
            os._exit(0)
        print(os.getpid(), grandchild, flush=True)
        os.waitpid(grandchild, 0)
        os._exit(0)
    os.waitpid(child, 0)
threading.Thread(target=work, daemon=True).start()
{WAIT.replace("print('ready', flush=True)", "")}
"""


def test_children_of_every_thread_are_found() -> None:
    with child(FORKS_IN_A_THREAD) as process:
        first, second = map(int, word(process).split())
        assert [first] == list(watch.children_of(process.pid))
        assert [first, second] == list(watch.descendants(process.pid))
        of_the_main_thread = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        assert "" == of_the_main_thread.read_text()


def test_a_process_that_shares_its_core_waits() -> None:
    if not Path("/proc/self/schedstat").exists():
        pytest.skip("this kernel does not tell how long a process waited")
    core = min(os.sched_getaffinity(0))
    spin = f"import os\nos.sched_setaffinity(0, [{core}])\nprint('ready', flush=True)\n"
    spin += f"while os.getppid() == {os.getpid()}: pass\n"
    with child(spin) as first, child(spin) as second:
        both = first.pid, second.pid
        assert ["ready", "ready"] == [word(first), word(second)]
        before = sum(map(watch.seconds_waited, both))
        started = monotonic()
        used = sum(map(cpu_seconds, both))
        eventually(lambda: sum(map(cpu_seconds, both)) > used + 0.5)
        waited = sum(map(watch.seconds_waited, both)) - before
        # On one core, of two that want it all the time one waits.
        assert 0.25 < waited <= 2 * (monotonic() - started) + 0.1


def test_tasks_of_a_user_are_the_threads_of_all_its_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for task in ("11/task/11", "11/task/12", "20/task/20", "not-a-process/task/1"):
        (tmp_path / task).mkdir(parents=True)
    (tmp_path / "30").mkdir()  # just ended
    (tmp_path / "version").touch()
    monkeypatch.setattr(watch, "PROC", tmp_path)
    assert 3 == watch.tasks_of_user(20)
    monkeypatch.setattr(watch, "PROC", Path("/proc"))
    ended = threading.Event()
    threads = [threading.Thread(target=ended.wait) for _ in range(5)]
    for thread in threads:
        thread.start()
    try:
        assert watch.tasks_of_user(os.getpid()) > 5
    finally:
        ended.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize(
    ("release", "apart"),
    [
        ("5.4.0-216-generic", False),
        ("5.13.19", False),
        ("5.14.0-427.13.1.el9_4.x86_64", True),
        ("6.1.0-41-amd64", True),
        ("6.11.0-1016-nvidia-64k", True),
        ("10.0", True),
    ],
)
def test_tasks_are_counted_by_namespace_since_linux_5_14(
    release: str, apart: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(release=release))
    assert apart is watch.tasks_are_counted_by_namespace()


def starts_one(code: str) -> str:
    """A process whose one child runs this: what a zygote is."""
    return f"import os\nif os.fork() == 0:\n  exec({code!r})\n  os._exit(0)\nos.wait()\n"


def test_cpu_beyond_its_limit_is_told_and_remembered() -> None:
    with child(starts_one(BURN + WAIT)) as process:
        assert "ready" == word(process)
        limits = Limits(cpu_seconds=0.1, wall_seconds=1e6)
        watched = Watch(process.pid, limits, monotonic())
        assert "cpu_limit" == watched.broken_limit()
        seen = watched.cpu_seconds
        assert seen > 0.2
        (below,) = watch.descendants(process.pid)
        os.kill(below, 9)
        process.wait()
        assert "cpu_limit" == watched.broken_limit()
        assert seen == watched.cpu_seconds


NOBODY_WAITS = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
parent = os.getppid()
while os.getppid() == parent:
    if os.fork() == 0:
        while time.process_time() < 0.1: pass
        os._exit(0)
    try:
        os.waitpid(-1, 0)
    except ChildProcessError:
        pass
"""
"""One child after another burns 0.1 s, and the kernel reaps each: its time is in no sum."""


def test_cpu_of_children_that_nobody_waits_for_is_counted() -> None:
    with child(starts_one(starts_one(NOBODY_WAITS))) as process:
        watched = Watch(process.pid, ROOMY, monotonic())

        def used_a_second() -> bool:
            assert watched.broken_limit() is None
            return watched.cpu_seconds > 1

        eventually(used_a_second)
        init = next(watch.descendants(process.pid))
        program = next(watch.descendants(init))
        assert cpu_seconds(program) < 0.5, "it does next to nothing itself"
        os.kill(init, 9)  # which ends the program, that would never end
        process.wait()


def test_cpu_of_children_that_were_waited_for_is_counted_once() -> None:
    one = f"  if os.fork() == 0:\n    exec({BURN!r})\n    os._exit(0)\n  os.wait()\n"
    code = f"import os\nfor _ in range(8):\n{one}"
    with child(starts_one(code + WAIT)) as process:
        watched = Watch(process.pid, ROOMY, monotonic())
        ended = threading.Thread(target=word, args=(process,))
        ended.start()
        while ended.is_alive():
            assert watched.broken_limit() is None
            ended.join(0.05)
        watched.broken_limit()
        (below,) = watch.descendants(process.pid)
        # A child is taken to have run to the look after its end: a twentieth of a second each.
        assert cpu_seconds(below) - 0.1 < watched.cpu_seconds < cpu_seconds(below) + 8 * 0.25


LEADER_GONE = """
import ctypes, platform, sys, threading
held = bytearray(b"x") * (64 << 20)
def stay():
    print("ready", flush=True)
    sys.stdin.read()
threading.Thread(target=stay).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
"""


def test_memory_of_a_process_whose_first_thread_has_left_is_seen() -> None:
    with child(LEADER_GONE) as process:
        assert "ready" == word(process)
        eventually(lambda: b") Z " in Path(f"/proc/{process.pid}/stat").read_bytes())
        for measure in (watch.resident_bytes, watch.proportional_bytes):
            assert 64 * MIB < measure(process.pid) < 128 * MIB


PAGE_TABLES = """
import mmap
for place in range(512):
    room = mmap.mmap(-1, 1 << 30, mmap.MAP_PRIVATE | 0x4000)
    room[0]
    globals()[f"kept{place}"] = room
"""


def test_memory_for_page_tables_counts() -> None:
    """One page that was read in each of 512 GiB: 4 KiB of tables for each."""
    with child(PAGE_TABLES + WAIT) as process:
        assert "ready" == word(process)
        for measure in (watch.resident_bytes, watch.proportional_bytes):
            assert measure(process.pid) > 512 * 4096


def test_within_all_limits_nothing_is_told_and_a_look_is_timed() -> None:
    with child(starts_one(WAIT)) as process:
        assert "ready" == word(process)
        watched = Watch(process.pid, ROOMY, monotonic())
        assert watched.broken_limit() is None
        assert 0 < watched.seconds_of_a_look < PATIENCE_SECONDS
        assert MIB < watched.memory_bytes < 64 * MIB


def test_time_by_the_clock_leaves_out_waiting_for_a_core_up_to_a_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with child(starts_one(WAIT)) as process:
        assert "ready" == word(process)
        limits = Limits(cpu_seconds=1e6, wall_seconds=1000)

        def after(seconds: float) -> str | None:
            return Watch(process.pid, limits, monotonic() - seconds).broken_limit()

        assert after(990) is None
        assert "wall_limit" == after(1010)
        monkeypatch.setattr(watch, "seconds_waited", lambda pid: 1500.0)
        assert after(2400) is None
        assert "wall_limit" == after(2600)
        monkeypatch.setattr(watch, "seconds_waited", lambda pid: 1e9)
        assert after(4900) is None
        assert "wall_limit" == after(5100)


def test_waiting_for_a_core_is_remembered_of_a_process_that_has_just_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """lcb-23: it is gone before its answer is read, and was not idle for that."""
    limits = Limits(cpu_seconds=1e6, wall_seconds=1000)
    with child(starts_one(WAIT)) as process:
        assert "ready" == word(process)
        watched = Watch(process.pid, limits, monotonic() - 1400)
        monkeypatch.setattr(watch, "seconds_waited", lambda pid: 500.0)
        assert watched.broken_limit() is None
        (below,) = watch.descendants(process.pid)
        os.kill(below, 9)
        process.wait()
        monkeypatch.undo()
        assert watched.broken_limit() is None
        watched.started -= 200
        assert "wall_limit" == watched.broken_limit()


# The interpreter


def test_the_interpreter_is_there_with_all_that_is_shown() -> None:
    found = this_interpreter()
    assert os.access(found.executable, os.X_OK)
    assert found.executable == os.path.realpath(found.executable)
    for inside, outside in found.shown.items():
        assert inside.startswith("/")
        assert Path(outside).exists()


def test_the_interpreter_is_shown_with_its_standard_library() -> None:
    shown = this_interpreter().shown

    def is_shown(path: str) -> bool:
        return any(path == outer or path.startswith(f"{outer}/") for outer in shown)

    assert is_shown(this_interpreter().executable)
    assert is_shown(os.path.abspath(f"{sys.base_prefix}/lib"))


def test_parents_are_shown_before_what_is_in_them() -> None:
    shown = list(this_interpreter().shown)
    for place, path in enumerate(shown):
        assert not any(path.startswith(f"{later}/") for later in shown[place:])


def test_nothing_of_a_home_or_of_the_environment_is_shown_but_what_is_needed() -> None:
    found = this_interpreter()
    outside = set(found.shown.values())
    assert not outside & {
        "/",
        "/home",
        "/root",
        "/etc",
        "/tmp",
        "/usr",
        sys.prefix,
        str(Path.home()),
    }
    if sys.prefix != sys.base_prefix:
        below = {path for path in outside if path.startswith(f"{sys.prefix}/")}
        assert {Path(path).name for path in below} <= {"numpy", "numpy.libs", "sortedcontainers"}


def test_what_is_offered_is_shown_alone_where_it_is_installed() -> None:
    numpy = pytest.importorskip("numpy")
    found = this_interpreter()
    assert numpy.__version__ == found.packages["numpy"]
    assert str(Path(numpy.__file__).parent) == found.shown[f"{PACKAGES}/numpy"]
    assert str(Path(numpy.__file__).parents[1]) in found.site
    assert {"numpy", "numpy.libs", "sortedcontainers"} >= {
        Path(inside).name for inside in found.shown if inside.startswith(PACKAGES)
    }
    assert f"numpy {numpy.__version__}" in found.name


def test_without_numpy_there_are_no_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "find_spec", lambda name: None)
    found = this_interpreter()
    assert ({}, ()) == (found.packages, found.site)
    assert not any(inside.startswith(PACKAGES) for inside in found.shown)
    assert "no numpy" in found.name


def test_numpy_without_its_metadata_is_used_and_named_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numpy")

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(interpreter, "version", missing)
    assert "numpy of unknown version" in this_interpreter().name


def test_numpy_may_have_no_folder_of_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian's and conda's numpy use those of the system."""
    (tmp_path / "numpy").mkdir()
    spec = SimpleNamespace(origin=str(tmp_path / "numpy" / "__init__.py"))
    monkeypatch.setattr(interpreter, "find_spec", lambda name: spec)
    shown = this_interpreter().shown
    assert str(tmp_path / "numpy") == shown[f"{PACKAGES}/numpy"]
    assert f"{PACKAGES}/numpy.libs" not in shown


def test_what_is_in_a_shown_folder_is_not_shown_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inner").mkdir()
    inner, outer = str(tmp_path / "inner"), str(tmp_path)
    monkeypatch.setattr(interpreter, "LIBRARIES", (inner, outer, f"{outer}/is-not-there"))
    shown = this_interpreter().shown
    assert outer == shown[outer]
    assert not {inner, f"{outer}/is-not-there"} & shown.keys()


def test_below_a_linked_prefix_the_library_is_shown_where_the_executable_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """uv names its interpreters by a link. One that does not find its own library beside its real
    executable takes that of the system, when the version is the same.
    """
    link = tmp_path / "python"
    link.symlink_to(sys.base_prefix)
    real = os.path.realpath(f"{sys.base_prefix}/lib")
    monkeypatch.setattr(sys, "base_prefix", str(link))
    monkeypatch.setattr(sys, "base_exec_prefix", str(link))
    shown = this_interpreter().shown
    assert any(real == outer or real.startswith(f"{outer}/") for outer in shown)


def test_descendants_are_found_where_the_kernel_does_not_list_children(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, text=True
    ) as process:
        while len(listed := set(watch.descendants(process.pid))) < 1:
            pass
        monkeypatch.setattr(watch, "KERNEL_LISTS_CHILDREN", False)
        assert listed == set(watch.descendants(process.pid))
        assert process.pid in watch.children_by_parent()[os.getpid()]
        process.communicate("\n")
