"""The verdict on a program is the one a real judge gives, and says nothing of a test."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from plain_runner import run_plainly

from qualeval.errors import SandboxError
from qualeval.graders import code as grader
from qualeval.graders.code import Judged, VerdictWord
from qualeval.sandbox.values import MIB, Limits, Ran, RunStatus

BESIDE = Path(__file__).parents[2] / "shared" / "data"
FAULTS = Path(os.environ.get("QUALEVAL_REFERENCE_DATA", BESIDE)) / "known-faults.jsonl"

PLENTY = Limits(cpu_seconds=60, wall_seconds=120)
"""For programs that end by themselves; `run_plainly` counts the time that they wait for a core."""
TIGHT = replace(PLENTY, output_bytes=MIB, memory_bytes=512 * MIB)
LITTLE_TIME = {
    "while True: pass": replace(TIGHT, cpu_seconds=2),
    "import time\ntime.sleep(600)": replace(TIGHT, wall_seconds=2),
}
"""Limits of programs that end by no other."""


def script(program: str, stdin: str = "", stdout: str = "", limits: Limits = PLENTY) -> Judged:
    return grader.judge(program, [grader.Test(stdin, stdout)], None, run_plainly, limits)


def function(program: str, test_input: str, output: str, name: str = "f") -> Judged:
    return grader.judge(program, [grader.Test(test_input, output)], name, run_plainly, PLENTY)


@pytest.mark.parametrize(
    ("program", "stdin", "stdout"),
    [
        pytest.param(
            "import sys\nr=sys.stdin.buffer.readline\na=int(r()); b=int(r())\nprint(a*10+b)",
            "4\n7\n",
            "47\n",
            id="lcb-01",
        ),
        pytest.param(
            "import sys\nn=int(sys.stdin.readline())\n"
            "rest=sys.stdin.read().split()\nprint(n,len(rest))",
            "2\n8 9\n",
            "2 2\n",
            id="lcb-02",
        ),
        pytest.param(
            "import sys\nprint(sum(int(x) for x in sys.stdin))", "4\n7\n", "11\n", id="lcb-03"
        ),
        pytest.param("import sys\nsys.stdout.buffer.write(b'5\\n')", "", "5\n", id="lcb-04"),
        pytest.param(
            "n=0\ndef add():\n    global n\n    n+=1\nadd()\nprint(n)", "1\n", "1\n", id="lcb-05"
        ),
        pytest.param("print(0.333333)", "1\n", "0.3333333333\n", id="lcb-11"),
        pytest.param("print(10**5000)", "1\n", "1" + "0" * 5000, id="lcb-12"),
    ],
)
def test_public_faults_of_scripts_are_right_here(program: str, stdin: str, stdout: str) -> None:
    """lcb-01, lcb-02, lcb-03, lcb-04, lcb-05, lcb-11, lcb-12."""
    assert script(program, stdin, stdout).verdict == "accepted"


DEFECTS = {
    "1 next": ("import sys\nprint(next(sys.stdin).strip(), next(sys.stdin))", "4\n7\n", "4 7"),
    "2 lines": ("import sys\nprint(len(sys.stdin.buffer.readlines()))", "4\n7\n", "2"),
    "2 iteration": ("import sys\nprint([int(x) for x in sys.stdin.buffer][1])", "4\n7\n", "7"),
    "3 read after input": ("import sys\ninput()\nprint(sys.stdin.read())", "4\n7\n", "7"),
    "3 read twice": ("import sys\nsys.stdin.read()\nprint([sys.stdin.read()])", "4\n", "['']"),
    "3 readlines": ("import sys\nprint(sys.stdin.readlines())", "4\n7\n", "['4\\n', '7\\n']"),
    "4 open(0)": ("print(*open(0).read().split())", "4\n7\n", "4 7"),
    "4 os.read": ("import os\nprint(os.read(0, 99).decode())", "4\n", "4"),
    "5 os.write": ("import os\nos.write(1, b'5\\n')", "", "5"),
    "6 off a little": ("print(0.1 + 0.2)", "", "0.3"),
    "7 global": ("def f():\n    global x\n    x = 1\nf()\nprint(x)", "", "1"),
    "8 exec": ("exec('x = 5')\nprint(x, globals()['x'])", "", "5 5"),
    "8 star in try": (
        "try:\n    from math import *\nexcept ImportError:\n    pass\nprint(gcd(4, 6))",
        "",
        "2",
    ),
    "9 future": ("from __future__ import annotations\nprint(5)", "", "5"),
    "10 guard swapped": ("if '__main__' == __name__:\n    print(5)", "", "5"),
    "10 guard not last": ("def f(): print(5)\nif __name__ == '__main__':\n    f()\nx = 1", "", "5"),
    "10b Solution": ("class Solution:\n    def f(self): return 5\nprint(Solution().f())", "", "5"),
    "11 quit": ("print(5)\nquit()", "", "5"),
    "11 exit": ("print(5)\nexit()", "", "5"),
    "11 close": ("import sys\nprint(5)\nsys.stdout.close()", "", "5"),
    "11 modules": ("import resource, os\nos.getcwd()\nprint(5)", "", "5"),
    "12 _exit": ("import os\nprint(5, flush=True)\nos._exit(0)", "", "5"),
    "12 sys.exit": ("import sys\nprint(5)\nsys.exit(0)", "", "5"),
    "18 digits": ("print(int('1' * 5000) % 10)", "", "1"),
    "threads": (
        "import threading\nt = threading.Thread(target=print, args=(5,))\nt.start()",
        "",
        "5",
    ),
    "no newline": ("print(5, end='')", "", "5\n"),
    "numpy": ("import numpy as np\nprint(int(np.arange(4).sum()))", "", "6"),
    "prelude": ("print(gcd(4, 6), len(defaultdict(int)))", "", "2 0"),
}


@pytest.mark.parametrize("defect", list(DEFECTS))
def test_defects_of_the_official_grader_are_right_here(defect: str) -> None:
    """method/lcb.md part 4, by its row numbers: what a real judge says."""
    program, stdin, stdout = DEFECTS[defect]
    assert script(program, stdin, stdout).verdict == "accepted"


@pytest.mark.parametrize(
    ("program", "test_input", "output"),
    [
        (
            "class Solution:\n    def f(self, x): return [(1, (2.0000000001, x))]",
            "3",
            "[[1, [2.0, 3]]]",
        ),
        ("from __future__ import annotations\ndef f(x: List[int]): return x[0]", "[7]\n", "7"),
        ("class Solution:\n    def f(self, x): return np.int64(x)\nimport numpy as np", "3", "3"),
        ("def f(a, b): return a + b", '"x"\n"y"', '"xy"'),
        ("def f(): return None", "", "null"),
        ("def f(x):\n    print(x)\n    return True", "1", "true"),
        (
            "import os\ndef f(x):\n    os.close(1)\n    return x",
            "10000000000000000000000",
            "10000000000000000000000",
        ),
    ],
)
def test_functions_that_are_right(program: str, test_input: str, output: str) -> None:
    """method/lcb.md part 4, rows 6, 9, 17 and 18."""
    assert function(program, test_input, output).verdict == "accepted"


def test_overridden_equality_is_not_asked() -> None:
    """lcb-16: the result is written down where it was made and compared here."""
    program = (
        "class E(list):\n    def __eq__(self,o): return True\n"
        "class Solution:\n    def f(self,x:int):\n        return E()"
    )
    assert function(program, "3", "4").verdict == "wrong_answer"


def test_expected_output_is_nowhere_in_the_process_of_a_program() -> None:
    """lcb-15: the frame walk that prints the answer in the official grader."""
    program = (
        "import inspect\nf=inspect.currentframe()\nwhile f:\n    if 'gt_out' in f.f_locals:\n"
        "        print(f.f_locals['gt_out'],end='')\n        break\n    f=f.f_back"
    )
    assert script(program, "1\n", "secret-42\n").verdict == "wrong_answer"
    seen: list[str] = []

    def run_code(code: str, stdin: bytes, limits: Limits) -> Ran:
        seen.append(code + stdin.decode())
        return run_plainly(code, stdin, limits)

    for name in (None, "f"):
        judged = grader.judge("def f(): pass", [grader.Test("1", '"secret-42"')], name, run_code)
        assert judged.failed_test == 0
    assert len(seen) == 2
    assert "secret-42" not in "".join(seen)


@pytest.mark.parametrize("tests", [(), iter(())])
def test_no_tests_are_an_error_and_never_a_pass(tests: Any) -> None:
    """lcb-13: all() over nothing is true."""
    with pytest.raises(ValueError, match="no tests"):
        grader.judge("raise SystemExit(1)", tests, None, run_plainly)


@pytest.mark.parametrize(
    ("program", "verdict", "reason"),
    [
        ("print(6)", "wrong_answer", "test 0: line 1 of the output differs"),
        ("", "wrong_answer", "test 0: wrote nothing"),
        ("while True: pass", "time_limit", "test 0: used more than 2 s of CPU"),
        ("import time\ntime.sleep(600)", "time_limit", "test 0: ran longer than 2 s"),
        ("while True: print('x' * 1000)", "output_limit", "test 0: wrote more than 1 MiB"),
        ("x = [0] * 10**9", "memory_limit", "test 0: MemoryError: no more memory was given"),
        (
            "import numpy\nnumpy.ones(10**10)",
            "memory_limit",
            "test 0: MemoryError: no more memory was given",
        ),
        ("print(5)\n1 / 0", "runtime_error", "test 0: raised ZeroDivisionError"),
        ("raise ValueError('a\\nb\\nc')", "runtime_error", "test 0: raised ValueError"),
        ("input()", "runtime_error", "test 0: raised EOFError"),
        ("import sys\nprint(5)\nsys.exit(3)", "runtime_error", "test 0: exit status 3"),
        ("import sys\nprint(5)\nsys.exit(1)", "runtime_error", "test 0: exit status 1"),
        (
            "class Secret42(Exception): pass\nraise Secret42",
            "runtime_error",
            "test 0: exit status 1",
        ),
        ("import os\nos.abort()", "runtime_error", "test 0: ended by SIGABRT"),
        ("print(", "runtime_error", "test 0: raised SyntaxError"),
    ],
)
def test_how_a_script_fails_is_its_verdict(program: str, verdict: str, reason: str) -> None:
    judged = script(program, "", "5", LITTLE_TIME.get(program, TIGHT))
    assert (judged.verdict, judged.reason) == (verdict, reason)
    assert judged.failed_test == 0


@pytest.mark.parametrize(
    ("program", "verdict", "reason"),
    [
        (
            "def f(x): return {x}",
            "wrong_answer",
            "the function returned another value than expected",
        ),
        (
            "import sys\ndef f(x): sys.exit(0)",
            "runtime_error",
            "ended before the function returned",
        ),
        ("def g(x): return x", "runtime_error", "raised AttributeError"),
        ("def f(x): return x + None", "runtime_error", "raised TypeError"),
        ("x = input()\ndef f(x): return x", "runtime_error", "raised EOFError"),
        ("class Solution:\n  def __init__(self, n): pass", "runtime_error", "raised TypeError"),
    ],
)
def test_how_a_function_fails_is_its_verdict(program: str, verdict: str, reason: str) -> None:
    judged = function(program, "1", "1")
    assert (judged.verdict, judged.reason) == (verdict, f"test 0: {reason}")


def answering(**values: Any) -> Judged:
    """The verdict when a run ends like this."""
    ran: dict[str, Any] = {"status": "exited", "exit_code": 0, "signal": None, "stdout": b"5\n"}
    ran |= {"stderr": b"", "cpu_seconds": 0.1, "wall_seconds": 0.2, "max_rss_bytes": 1} | values

    def run_code(code: str, stdin: bytes, limits: Limits) -> Ran:
        return Ran(**ran)

    return grader.judge("print(5)", [grader.Test("", "5")], None, run_code)


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        ("cpu_limit", "time_limit"),
        ("wall_limit", "time_limit"),
        ("memory_limit", "memory_limit"),
        ("output_limit", "output_limit"),
        ("signaled", "runtime_error"),
        ("exited", "accepted"),
    ],
)
def test_every_limit_has_its_verdict(status: RunStatus, verdict: VerdictWord) -> None:
    """Even where the output is right."""
    assert answering(status=status).verdict == verdict


@pytest.mark.parametrize(
    ("signal", "name"), [(11, "SIGSEGV"), (9, "SIGKILL"), (99, "signal 99"), (None, "signal None")]
)
def test_signal_is_named(signal: int | None, name: str) -> None:
    judged = answering(status="signaled", exit_code=None, signal=signal)
    assert judged.reason == f"test 0: ended by {name}"


@pytest.mark.parametrize(
    ("stderr", "exit_code", "reason"),
    [
        (b"MemoryError", 1, "MemoryError: no more memory was given"),
        (
            b"numpy.core._exceptions._ArrayMemoryError: no",
            1,
            "MemoryError: no more memory was given",
        ),
        (b"MemoryError", 2, "exit status 2"),
        (b"KeyError: 'secret'\n\n", 1, "raised KeyError"),
        (b"\xff\x1b[31mKeyError: x", 1, "exit status 1"),
        (b"secret", 1, "exit status 1"),
        (b"secret: 5", 1, "exit status 1"),
        (b"", 1, "exit status 1"),
        (b"KeyError\n" + b"x y\n" * 30, 1, "exit status 1"),
    ],
)
def test_only_exceptions_of_python_itself_are_named(
    stderr: bytes, exit_code: int, reason: str
) -> None:
    """What a program writes to stderr may hold text of a test, and reasons are published."""
    assert answering(stderr=stderr, exit_code=exit_code).reason == f"test 0: {reason}"


TESTS = [grader.Test(str(n), str(n)) for n in range(5)]


def test_first_failing_test_ends_the_judging_and_is_counted_from_0() -> None:
    taken = []

    def lazily() -> Iterator[grader.Test]:
        for test in TESTS:
            taken.append(test)
            yield test

    program = "n = int(input())\nprint(n if n < 2 else -1)"
    judged = grader.judge(program, lazily(), None, run_plainly, PLENTY)
    assert (judged.verdict, judged.failed_test, judged.tests) == ("wrong_answer", 2, 3)
    assert judged.reason == "test 2: line 1 of the output differs"
    assert taken == TESTS[:3]


def test_figures_are_those_of_the_worst_test() -> None:
    runs = iter([(0.5, 0.6, 3 * MIB), (0.1, 0.9, 5 * MIB + 1), (0.2, 0.3, MIB)])

    def run_code(code: str, stdin: bytes, limits: Limits) -> Ran:
        cpu, wall, memory = next(runs)
        return Ran("exited", 0, None, stdin, b"", cpu, wall, memory)

    judged = grader.judge("", TESTS[:3], None, run_code)
    assert judged == Judged("accepted", None, 3, 500, 900, 6, "passed all tests (3)")


def test_program_may_idle_so_long_on_all_tests_together() -> None:
    """Each is within its own limit. Waiting for a core, and a second to start, are not idling."""

    def judged(wall: float, waited: float) -> str:
        def run_code(code: str, stdin: bytes, limits: Limits) -> Ran:
            return Ran("exited", 0, None, stdin, b"", 0.5, wall, MIB, waited)

        return grader.judge("", [grader.Test("1", "1")] * 100, None, run_code).verdict

    assert judged(11.5, 0) == "time_limit"
    assert judged(11.5, 10) == "accepted"
    assert judged(1.5, 0) == "accepted"


def test_budget_of_a_problem_is_cpu_over_all_its_tests() -> None:
    def run_code(code: str, stdin: bytes, limits: Limits) -> Ran:
        return Ran("exited", 0, None, stdin, b"", 4.0, 4.0, MIB)

    judged = grader.judge("", TESTS, None, run_code, budget_seconds=10)
    assert (judged.verdict, judged.failed_test, judged.tests) == ("time_limit", 2, 3)
    assert judged.reason == "test 2: the tests used more than 10 s of CPU together"
    assert grader.judge("", TESTS, None, run_code, budget_seconds=20).verdict == "accepted"


@pytest.mark.parametrize(("test_input", "output"), [("1", "x"), ("x", "1"), ("1", "")])
def test_functional_test_that_is_not_json_is_an_error_of_the_data(
    test_input: str, output: str
) -> None:
    with pytest.raises(ValueError):
        function("def f(x): return x", test_input, output)


def test_failure_of_the_sandbox_is_no_verdict() -> None:
    def run_code(code: str, stdin: bytes, limits: Limits) -> Ran:
        raise SandboxError("gone")

    with pytest.raises(SandboxError):
        grader.judge("print(1)", TESTS, None, run_code)


def test_limits_reach_the_runner_and_bytes_are_the_text_as_it_is() -> None:
    seen = []

    def run_code(code: str, stdin: bytes, limits: Limits) -> Ran:
        seen.append((code, stdin, limits))
        return Ran("exited", 0, None, stdin, b"", 0.0, 0.0, 0)

    grader.judge("x\r\n", [grader.Test("é\ud800\r\n ", "")], None, run_code, TIGHT)
    assert seen == [("x\r\n", b"\xc3\xa9\xed\xa0\x80\r\n ", TIGHT)]


def graded(reply: str, name: str | None = None) -> grader.Graded:
    tests = [grader.Test("5", "5")]
    return grader.grade(grader.extract(reply).candidates, tests, name, run_plainly, PLENTY)


def test_reply_is_judged_by_its_last_block_that_is_a_program() -> None:
    reply = "```python\nprint(input())\n```\nOutput:\n```\n5\n```\n```text\nprint(6)\n```"
    found = graded(reply)
    assert found.judged.verdict == "accepted"
    assert found.chosen is not None
    assert (found.chosen.code, found.chosen.how) == ("print(input())", "closed_python")


def test_example_of_use_is_not_the_function_that_is_called() -> None:
    reply = (
        "```python\nclass Solution:\n    def f(self, n): return n\n```\nFor example:\n"
        "```python\nprint(Solution().f(5))\n```\nIt takes:\n```\nO(n)\n```"
    )
    found = graded(reply, "f")
    assert found.judged.verdict == "accepted"
    assert found.chosen is not None
    assert not found.chosen.same_as_official
    last = "```python\ndef f(n): return 5\n```\n```python\ndef f(n): return 6\n```"
    assert graded(last, "f").judged.verdict == "wrong_answer"


def test_reply_without_code_is_not_run() -> None:
    for reply in ("", "Sorry, I cannot.", "```python\n```"):
        found = graded(reply)
        expected = Judged("no_code", None, 0, 0, 0, 0, "the reply holds no code")
        assert (found.judged, found.chosen) == (expected, None)


def test_code_that_does_not_compile_is_not_run() -> None:
    found = graded("```python\nx = (\n```", "f")
    assert found.judged.verdict == "compile_error"
    assert found.judged.reason == "SyntaxError in line 1: '(' was never closed"
    assert (found.judged.tests, found.judged.failed_test, found.chosen) == (0, None, None)


def test_same_input_gives_the_same_verdict() -> None:
    first, second = graded("```\nprint(7)\n```"), graded("```\nprint(7)\n```")
    assert first.chosen == second.chosen
    assert first.judged.verdict == second.judged.verdict == "wrong_answer"
    assert first.judged.reason == second.judged.reason


def test_deviations_are_a_few_lines() -> None:
    """They are written into every contract."""
    assert 0 < len(grader.DEVIATIONS) <= 14
    assert all("\n" not in line for line in grader.DEVIATIONS)
    assert grader.VERSION == "code 1"


def test_public_faults_are_those_of_the_shared_list() -> None:
    """Each public fault of this grader, as it is told there: the program and its verdict."""
    if not FAULTS.exists():
        pytest.skip("no reference data: ../shared/data or $QUALEVAL_REFERENCE_DATA")
    with FAULTS.open(encoding="utf-8") as lines:
        faults = {row["id"]: row["input"] for row in map(json.loads, lines)}
    for name in ("lcb-01", "lcb-02", "lcb-03", "lcb-04", "lcb-05", "lcb-11", "lcb-12"):
        stdout = "1" + "0" * 5000 if name == "lcb-12" else faults[name]["stdout"]
        judged = script(faults[name]["program"], faults[name]["stdin"], stdout)
        assert judged.verdict == "accepted", name
    for program, stdout, said in faults["lcb-11"]["control"]:
        judged = script(program, "", stdout)
        assert (judged.verdict == "accepted") is (said == "pass"), program
    for reply, code in faults["lcb-10"]["cases"]:
        assert grader.extract(reply).candidates[0].code == code
