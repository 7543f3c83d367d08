"""One sandbox: what goes in, what comes out, and that nothing stays."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import monotonic

import pytest
from engine import PATIENCE

from qualeval.errors import NoSandboxError, SandboxError
from qualeval.sandbox import RUNGS, Limits, Sandbox, check_rung, choose_sandbox, ladder, watch
from qualeval.sandbox.canaries import Canary
from qualeval.sandbox.interpreter import this_interpreter
from qualeval.sandbox.ladder import check_lines
from qualeval.sandbox.sandbox import RungName
from qualeval.sandbox.values import MIB
from qualeval.sandbox.watch import descendants, resident_bytes

PLENTY = Limits(cpu_seconds=30, wall_seconds=60)
SMALL = replace(PLENTY, memory_bytes=512 * MIB, output_bytes=MIB)
LITTLE_TIME = {
    "cpu_limit": replace(SMALL, cpu_seconds=1),
    "wall_limit": replace(SMALL, wall_seconds=2),
}
"""Limits of the programs that these end; whatever ends by itself has plenty of both."""


@pytest.fixture(scope="module", params=list(RUNGS))
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A sandbox of every rung that this machine has."""
    rung = check_rung(request.param, this_interpreter())
    if not rung.holds:
        pytest.skip(f"{rung.name}: {rung.canaries[-1].name}: {rung.canaries[-1].detail}")
    with Sandbox(request.param, this_interpreter()) as made:
        yield made


@pytest.fixture
def best() -> Iterator[Sandbox]:
    with choose_sandbox().sandbox() as made:
        yield made


# What comes out


def test_a_program_runs_as_main_with_real_standard_files(sandbox: Sandbox) -> None:
    code = (
        "import os, sys\n"
        "print(__name__, input())\n"
        "sys.stdout.flush()\n"
        "os.write(1, os.read(0, 100) + sys.argv[0].encode())\n"
        "print('said', file=sys.stderr)\n"
    )
    ran = sandbox.run(code, b"first\n", PLENTY)
    assert ("exited", 0, b"__main__ first\nsolution.py", b"said\n") == (
        ran.status,
        ran.exit_code,
        ran.stdout,
        ran.stderr,
    )
    assert 0 < ran.cpu_seconds < 30
    assert 0 < ran.wall_seconds < 60
    assert MIB < ran.max_rss_bytes < 512 * MIB


@pytest.mark.parametrize(
    ("code", "status", "exit_code", "by"),
    [
        ("", "exited", 0, None),
        ("import sys; sys.exit()", "exited", 0, None),
        ("import sys; sys.exit(3)", "exited", 3, None),
        ("raise SystemExit(256)", "exited", 0, None),
        ("raise SystemExit('why')", "exited", 1, None),
        ("exit(4)", "exited", 4, None),
        ("quit()", "exited", 0, None),
        ("import os; os._exit(5)", "exited", 5, None),
        ("1 / 0", "exited", 1, None),
        ("raise KeyboardInterrupt", "exited", 1, None),
        ("def broken(:", "exited", 1, None),
        ("print('\\0'", "exited", 1, None),
        ("import os; os.abort()", "signaled", None, signal.SIGABRT),
        ("import os; os.kill(os.getpid(), 9)", "signaled", None, signal.SIGKILL),
        ("import ctypes; ctypes.string_at(0)", "signaled", None, signal.SIGSEGV),
        ("import signal; signal.alarm(1); signal.pause()", "signaled", None, signal.SIGALRM),
        ("while True: pass", "cpu_limit", None, None),
        ("import time; time.sleep(600)", "wall_limit", None, None),
        ("import os; os.write(2, b'x' * (1 << 21))", "output_limit", None, None),
        ("x = b'x' * (600 << 20); import time; time.sleep(600)", "memory_limit", None, None),
    ],
)
def test_how_a_program_ended_is_told(
    sandbox: Sandbox, code: str, status: str, exit_code: int | None, by: int | None
) -> None:
    ran = sandbox.run(code, b"", LITTLE_TIME.get(status, SMALL))
    assert (status, exit_code, by) == (ran.status, ran.exit_code, ran.signal)


def test_a_traceback_shows_the_program_and_nothing_of_ours(best: Sandbox) -> None:
    ran = best.run("def f():\n    return 1 / 0\nf()\n", b"", SMALL)
    assert ran.stderr.decode().splitlines() == [
        "Traceback (most recent call last):",
        '  File "solution.py", line 3, in <module>',
        '  File "solution.py", line 2, in f',
        "ZeroDivisionError: division by zero",
    ]


@pytest.mark.parametrize(
    "code",
    [
        "out = open(1, 'w')\nout.write('late')",
        "import sys\nsys.stdout = open(1, 'w', closefd=False)\nprint('late', end='')",
        "import atexit\natexit.register(lambda: print('late', end=''))",
        "import threading, time\n"
        "threading.Thread(target=lambda: (time.sleep(.1), print('late', end=''))).start()",
        "class Late:\n    def __del__(self): print('late', end='')\nkept = Late()",
        "import sys\nsys.stdout.write('late')\nsys.stdout = None",
    ],
)
def test_what_a_program_says_at_its_end_is_not_lost(best: Sandbox, code: str) -> None:
    """What the interpreter does last happens: threads, exit functions, buffers."""
    assert (b"late", 0) == ((ran := best.run(code, b"", SMALL)).stdout, ran.exit_code)


def test_output_that_cannot_be_written_at_the_end_is_an_error(best: Sandbox) -> None:
    ran = best.run("import os\nprint('x')\nos.close(1)", b"", SMALL)
    assert (b"", 120) == (ran.stdout, ran.exit_code)


def test_output_at_its_limit_is_not_read(best: Sandbox) -> None:
    """lcb-21: endless output fills nobody's memory."""
    ran = best.run("while True:\n    print('x' * 1000)", b"", SMALL)
    assert ("output_limit", b"") == (ran.status, ran.stdout)
    assert len(best.run("import os\nos.write(2, b'y' * 9999)", b"", SMALL).stderr) == 4096


def test_a_long_input_is_no_trouble(sandbox: Sandbox) -> None:
    code = "import sys; print(len(sys.stdin.buffer.read()))"
    assert sandbox.run(code, b"1" * (70 * MIB), PLENTY).stdout == b"%d\n" % (70 * MIB)


def test_as_many_threads_as_a_pool_has_by_default(sandbox: Sandbox) -> None:
    code = (
        "import threading\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "gate = threading.Barrier(24)\n"
        "with ThreadPoolExecutor(24) as pool:\n"
        "    print(len(set(pool.map(lambda number: gate.wait(), range(24)))))\n"
    )
    assert sandbox.run(code, b"", PLENTY).stdout == b"24\n"


def test_a_lower_limit_that_qualeval_was_started_under_is_kept() -> None:
    """`ulimit -t 100`, say: limits of ours can only be lower ones."""
    code = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (20, 20))\n"
        "from qualeval.sandbox import Limits, choose_sandbox\n"
        "with choose_sandbox(unsafe=True).sandbox() as sandbox:\n"
        "    print(sandbox.run('print(1)', b'', Limits(cpu_seconds=60)).stdout)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "b'1\\n'\n" == ran.stdout


def test_a_failure_before_the_program_begins_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    from qualeval.sandbox import sandbox as module

    broken = module._sources()
    broken["zygote"] = broken["zygote"].replace("    limit(order)\n", "    1 / 0\n")
    monkeypatch.setattr(module, "_sources", lambda: broken)
    with choose_sandbox_unchecked() as made, pytest.raises(SandboxError, match="from outside"):
        made.run("print(1)", b"", SMALL)


def test_nothing_is_left_where_the_kernel_does_not_list_children(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from qualeval.sandbox import sandbox as module

    sources = module._sources()
    assert "/children" in sources["zygote"]
    sources["zygote"] = sources["zygote"].replace("/children", "/not-there")
    monkeypatch.setattr(module, "_sources", lambda: sources)
    monkeypatch.setattr(watch, "KERNEL_LISTS_CHILDREN", False)
    rung = check_rung("landlock", this_interpreter())
    if not rung.holds and "Landlock" in rung.canaries[-1].detail:
        pytest.skip(rung.canaries[-1].detail)
    assert [] == [canary for canary in rung.canaries if not canary.held]


def test_children_share_the_limit_of_cpu(sandbox: Sandbox) -> None:
    """Eight processes with 2 s together: with 2 s each they would use 16."""
    code = "import os\nfor _ in range(3): os.fork()\nwhile True: pass"
    ran = sandbox.run(code, b"", Limits(cpu_seconds=2, wall_seconds=120))
    assert ran.status == "cpu_limit"
    assert ran.cpu_seconds < 14


def test_waiting_for_a_core_is_no_time_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """lcb-23: crowds of programs on few cores. This one is beyond its wall limit, yet not idle."""
    monkeypatch.setattr(watch, "STARVED", 100)  # neighbours on all cores may starve it for long
    spin = "import time\nend = time.process_time() + 2\nwhile time.process_time() < end: pass"
    limits = Limits(cpu_seconds=20, wall_seconds=4)
    ends = []

    chosen = choose_sandbox()

    def run() -> None:
        with chosen.sandbox() as one:
            ends.append(one.run(spin, b"", limits).status)

    crowd = [threading.Thread(target=run) for _ in range(3 * len(os.sched_getaffinity(0)))]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    assert set(ends) == {"exited"}


def test_a_large_parent_costs_a_program_nothing(best: Sandbox) -> None:
    """lcb-22: what the parent has reserved is no memory of the program."""
    import mmap

    reserved_only = 0x4000  # MAP_NORESERVE
    with mmap.mmap(-1, 40 << 30, flags=mmap.MAP_PRIVATE | reserved_only):
        code = "import numpy as np\nprint(int(np.arange(4).sum()))"
        assert best.run(code, b"", Limits(memory_bytes=1024 * MIB)).stdout == b"6\n"


def test_numbers_may_have_any_number_of_digits(best: Sandbox) -> None:
    """lcb-12"""
    assert best.run("print(10 ** 5000)", b"", PLENTY).stdout == b"1" + b"0" * 5000 + b"\n"


def test_names_of_the_reference_need_no_import_and_hide_nothing(best: Sandbox) -> None:
    code = (
        "print(gcd(4, 6), defaultdict, pow(2, 5, 7), 'gcd' in globals())\ndef gcd(a, b): return 9"
    )
    said = best.run(code, b"", PLENTY).stdout
    assert said == b"2 <class 'collections.defaultdict'> 4 False\n"
    assert best.run("count = 7\nprint(count)", b"", PLENTY).stdout == b"7\n"


def test_functions_and_scripts_are_given_the_same_names(best: Sandbox) -> None:
    """The sandbox has them for scripts, the grader brings them for functions."""
    import builtins

    from qualeval.graders.code.function_harness import PRELUDE

    brought: dict[str, object] = {}
    exec(PRELUDE, brought)
    names = {name for name in brought if name[:2] != "__"} - set(vars(builtins))
    said = best.run("import builtins\nprint(*vars(builtins))", b"", PLENTY).stdout.decode()
    assert names <= set(said.split())
    assert set(said.split()) - names - set(vars(builtins)) <= {"exit", "quit"}


def test_hashes_are_the_same_in_every_sandbox() -> None:
    said = set()
    for _ in range(2):
        with choose_sandbox().sandbox() as made:
            said.add(made.run("print(hash('a word'))", b"", PLENTY).stdout)
    assert len(said) == 1


# What stays


def test_two_thousand_programs_leave_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # one that nobody else uses
    files = set(os.listdir("/proc/self/fd"))
    below = set(descendants(os.getpid()))
    with choose_sandbox().sandbox() as made:
        made.run("", b"", SMALL)
        inside = (len(os.listdir("/proc/self/fd")), len(list(descendants(made.pid or 0))))
        for number in range(2000):
            assert made.run("print(input())", b"%d\n" % number, PLENTY).stdout == b"%d\n" % number
        assert inside == (len(os.listdir("/proc/self/fd")), len(list(descendants(made.pid or 0))))
        assert resident(made.pid or 0) < 64 * MIB
    assert files == set(os.listdir("/proc/self/fd"))
    assert below == set(descendants(os.getpid()))
    assert [] == os.listdir(tempfile.gettempdir())


def resident(root: int) -> int:
    return max(map(resident_bytes, descendants(root)))


def test_a_program_ends_with_the_process_that_owns_it(sandbox: Sandbox) -> None:
    """kill -9 of qualeval in the middle of a program."""
    code = (
        "import threading\n"
        "from qualeval.sandbox import Limits, Sandbox\n"
        "from qualeval.sandbox.interpreter import this_interpreter\n"
        "from qualeval.sandbox.watch import descendants\n"
        f"sandbox = Sandbox({sandbox.rung!r}, this_interpreter())\n"
        "sandbox.run('', b'', Limits())\n"
        "before = len(list(descendants(sandbox.pid)))\n"
        "def tell():\n"
        "    while len(inside := list(descendants(sandbox.pid))) < before + 2:\n"
        "        pass\n"
        "    print(sandbox.pid, *inside, flush=True)\n"
        "threading.Thread(target=tell).start()\n"
        "sandbox.run('import time; time.sleep(60)', b'', Limits(wall_seconds=60))\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        inside = set(map(int, owner.stdout.readline().split()))
        assert len(inside) >= 3
        owner.kill()
    wait_until_gone(inside)


def wait_until_gone(pids: set[int]) -> None:
    deadline = monotonic() + PATIENCE
    while left := set(filter(alive, pids)):
        assert monotonic() < deadline, left
        threading.Event().wait(0.02)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# When it fails


def when_inside(made: Sandbox, before: set[int], act: int) -> None:
    """Send a signal to all that is inside, as soon as there is more than `before`."""
    deadline = monotonic() + PATIENCE
    while len(inside := set(descendants(made.pid or 0)) - before) < 2:
        assert monotonic() < deadline
    for pid in inside | before | {made.pid or 0}:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, act)


def test_a_sandbox_that_is_killed_is_an_error_of_ours_and_starts_again(sandbox: Sandbox) -> None:
    sandbox.run("", b"", SMALL)
    before = set(descendants(sandbox.pid or 0))
    killer = threading.Thread(target=when_inside, args=(sandbox, before, signal.SIGKILL))
    killer.start()
    with pytest.raises(SandboxError, match=f"sandbox .{sandbox.rung}."):
        sandbox.run("import time; time.sleep(30)", b"", Limits(wall_seconds=60))
    killer.join()
    assert sandbox.run("print(1)", b"", SMALL).stdout == b"1\n"


def test_another_thread_can_end_a_program_and_nothing_is_left_of_it(sandbox: Sandbox) -> None:
    with Sandbox(sandbox.rung, sandbox.interpreter) as made:
        made.run("", b"", SMALL)
        before = set(descendants(made.pid or 0))
        inside: set[int] = set()

        def interrupt() -> None:
            while len(set(descendants(made.pid or 0)) - before) < 2:
                pass
            inside.update(descendants(made.pid or 0))
            made.interrupt()

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(SandboxError, match="ended in the middle of a program"):
            made.run("import time; time.sleep(30)", b"", Limits(wall_seconds=60))
        thread.join()
        wait_until_gone(inside)
        with pytest.raises(SandboxError, match="interrupted"):
            made.run("", b"", SMALL)


def test_a_sandbox_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qualeval.sandbox.sandbox.LOADER", "import sys; sys.exit('no such luck')")
    with pytest.raises(SandboxError, match="did not start: no such luck"):
        choose_sandbox_unchecked().run("", b"", SMALL)


def choose_sandbox_unchecked() -> Sandbox:
    return choose_sandbox(unsafe=True).sandbox()


# The ladder


def test_without_a_sandbox_the_self_test_fails() -> None:
    """Otherwise it would be no test."""
    rung = check_rung("none", this_interpreter())
    assert not rung.holds
    assert "files are hidden" == rung.canaries[-1].name


def test_a_rung_is_left_at_the_first_attack_that_it_does_not_hold() -> None:
    names = [canary.name for canary in check_rung("none", this_interpreter()).canaries]
    assert ["programs run", "no root", "files are hidden"] == names


def test_without_bubblewrap_the_next_rung_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    chosen = choose_sandbox()
    assert chosen.rung in ("namespaces", "landlock")
    assert "bwrap is not installed" == chosen.tried[0].canaries[-1].detail


def test_where_no_rung_holds_it_refuses_and_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failed = Canary("network", False, "can be reached")
    monkeypatch.setattr(ladder, "attack", lambda sandbox: iter([failed]))
    with pytest.raises(NoSandboxError) as refused:
        choose_sandbox()
    said = str(refused.value)
    for word in ("bubblewrap: network: can be reached", "landlock: network", "apt install"):
        assert word in said
    assert "--parts" in said
    lines, code = check_lines()
    assert 2 == code
    assert "no program of a model will be run here" == lines[-1]


@pytest.mark.parametrize(
    ("system", "machine"), [("darwin", "arm64"), ("linux", "riscv64"), ("win32", "AMD64")]
)
def test_a_machine_whose_calls_are_not_known_is_refused(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str
) -> None:
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    for choose in (choose_sandbox, check_lines, lambda: choose_sandbox(unsafe=True)):
        with pytest.raises(NoSandboxError, match=f"this is {system} on {machine}"):
            choose()


def test_the_name_of_a_sandbox_tells_rung_interpreter_and_machine() -> None:
    interpreter = this_interpreter()
    release = ".".join(map(str, sys.version_info[:3]))
    packages = ", ".join(f"{name} {version}" for name, version in interpreter.packages.items())
    assert f"cpython {release}, {packages}, {os.uname().machine}" == interpreter.name
    assert ["numpy", "sortedcontainers"] == list(interpreter.packages)
    chosen = choose_sandbox()
    assert f"{chosen.rung}, {interpreter.name}" == chosen.name
    unsafe = choose_sandbox(unsafe=True)
    assert f"NONE (--unsafe-no-sandbox), {interpreter.name}" == unsafe.name
    assert () == unsafe.tried


def test_check_says_which_attacks_were_held() -> None:
    lines, code = check_lines(every=True)
    assert 0 == code
    assert lines[-1].startswith("programs run in: ")
    assert 3 == sum(line.partition(":")[0] in RUNGS for line in lines)
    assert any("held" in line and "fork bomb of 100" in line for line in lines)


def test_an_interpreter_that_only_root_may_reach_is_shown_to_nobody_else() -> None:
    """As root: a folder of mode 0700 above the interpreter. Not root: nothing to do."""
    interpreter = this_interpreter()
    closed = [p for p in Path(interpreter.executable).parents if not p.stat().st_mode & 1]
    if not closed or os.geteuid() != 0:
        pytest.skip("the interpreter is where everybody may go")
    with choose_sandbox().sandbox() as made:
        code = f"import os\nprint(os.getuid() > 1000, os.listdir({str(closed[-1])!r}))"
        said = made.run(code, b"", SMALL).stdout.decode()
    below = Path(interpreter.executable).relative_to(closed[-1]).parts[0]
    assert f"True [{below!r}]\n" == said


def test_every_rung_is_named(sandbox: Sandbox) -> None:
    names: tuple[RungName, ...] = ("bubblewrap", "namespaces", "landlock")
    assert names == tuple(RUNGS)
    assert sandbox.rung in names
