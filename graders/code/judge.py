"""The verdict on a program: run on every test in a process of its own, compared out here.

Nothing of an expected output goes into the sandbox, and nothing of a test goes into a reason: what
is returned here is published.
"""

import builtins
import re
import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from qualeval.graders.code import call
from qualeval.graders.code.choice import choose, script
from qualeval.graders.code.extraction import Candidate
from qualeval.graders.code.output import difference
from qualeval.sandbox.values import MIB, Limits, Ran, RunCode

VERSION = "code 1"

VerdictWord = Literal[
    "accepted",
    "wrong_answer",
    "time_limit",
    "memory_limit",
    "output_limit",
    "runtime_error",
    "compile_error",
    "no_code",
]
"""What a judge says. `cut_off` and `infra_error` are said by who calls it."""

CPU_SECONDS = 6.0
"""Time limit of a test, that of LiveCodeBench."""

SLACK = 1.25
"""A program is ended at so many times its limit: the same work takes more CPU on a slow core, or
beside a busy neighbour, and the machine must not decide."""

LIMITS = Limits(cpu_seconds=CPU_SECONDS * SLACK, wall_seconds=2 * CPU_SECONDS)

BUDGET_SECONDS = 180.0
"""CPU that all tests of a problem may use together."""

IDLE_SECONDS = 120.0
"""Time that a program may spend on all tests of a problem with nothing but waiting, the first
second of a test left out: starting one takes time of a busy machine's, not of the program's.
"""

DEVIATIONS = (
    "standard input and output are real files: iterating stdin, open(0), os.read, stdin.buffer, "
    "read after input() and stdout.buffer work",
    "a script runs unchanged as __main__: `global`, `from __future__`, exec, a main guard in any "
    "place and a class Solution in it work",
    "expected numbers with a point or an exponent allow 1e-6, absolute or relative; integers and "
    "all other text are exact",
    "results of functions: nested tuples equal lists, expected floats allow 1e-6, keys of a dict "
    "are read as JSON writes them, numpy arrays are lists, a subclass is what it is made of, and "
    "no __eq__ of the answer is asked: what JSON has no form for (a set, a Fraction) is equal to "
    "nothing",
    "names that the official grader offers without an import are found in scripts too, behind the "
    "program's own and Python's",
    "every test has a fresh process and a fresh Solution: nothing carries over",
    "the exit status decides: os._exit(0) after the right output passes, sys.exit(1) after it "
    "does not (the official grader swallows SystemExit)",
    "integers may have any number of digits",
    "recursion may use a big stack, as on the judges",
    "a test has 6 s of CPU and a quarter more for slow machines, and 12 s by the clock, of which "
    "waiting for a core does not count; the official grader counts 6 s by the clock, and limits no "
    "memory",
    "code is the last closed fenced block that is a Python program (and has the function, if one "
    "is called), indented and tilde fences included, else an open block or a reply that is all "
    "code; the official grader takes what is between the last two lines with backticks",
    "trailing blank lines in the input of a function test are no argument",
    "no tests is an error of the data, not a pass",
    "a sandbox that fails gives no verdict, never a wrong answer",
)
"""Where verdicts knowingly leave LiveCodeBench's own grader; a line each, for the contract."""

_EXCEPTIONS = frozenset(
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
)
_RAISED = re.compile(rb"([A-Za-z_][\w.]{0,80})(?::|\s*$)")
_OUT_OF_MEMORY = re.compile(r"(?:[\w.]*\._?Array)?MemoryError")
_LAST_LINES = 20


@dataclass(frozen=True, slots=True)
class Test:
    """One test as the data set has it: the text of its input and of its output.

    For a function: an argument a line as JSON, and the result as JSON.
    """

    input: str
    output: str


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict.

    `failed_test` is the place of the first test that failed, from 0, public tests before private
    ones as in the official grader; None when none did. `tests` were run. `cpu_ms`, `wall_ms` and
    `max_rss_mib` are the highest of any test. `reason` is a sentence without any text of a test.
    """

    verdict: VerdictWord
    failed_test: int | None
    tests: int
    cpu_ms: int
    wall_ms: int
    max_rss_mib: int
    reason: str


@dataclass(frozen=True, slots=True)
class Graded:
    """The verdict on a reply, and the candidate that was taken for its program."""

    judged: Judged
    chosen: Candidate | None


def grade(
    candidates: Sequence[Candidate],
    tests: Iterable[Test],
    function: str | None,
    run_code: RunCode,
    limits: Limits = LIMITS,
    budget_seconds: float = BUDGET_SECONDS,
) -> Graded:
    """Judge the first candidate that is a program, and has the function if one is called. `tests`
    are not touched when there is none.

    Raises what `judge` raises.
    """
    if not candidates:
        return Graded(_unrun("no_code", "the reply holds no code"), None)
    codes = [candidate.code for candidate in candidates]
    choice = choose(codes, run_code, limits, function)
    if choice.index is None:
        return Graded(_unrun("compile_error", choice.why), None)
    chosen = candidates[choice.index]
    return Graded(judge(chosen.code, tests, function, run_code, limits, budget_seconds), chosen)


def judge(
    code: str,
    tests: Iterable[Test],
    function: str | None,
    run_code: RunCode,
    limits: Limits = LIMITS,
    budget_seconds: float = BUDGET_SECONDS,
) -> Judged:
    """Run a program on its tests up to the first that fails. It should compile.

    `function`: the name that a functional test calls, None for a script. `budget_seconds`: CPU that
    all tests together may use. Tests are taken one at a time, so that they may be decoded lazily.
    Raises ValueError for no tests and for a functional test that is not JSON, and SandboxError as
    `run_code` does.
    """
    judged = _unrun("accepted", "")
    used = idle = 0.0
    for place, test in enumerate(tests):
        ran, failure = _run(code, test, function, run_code, limits)
        used += ran.cpu_seconds
        if failure is None and used > budget_seconds:
            failure = "time_limit", f"the tests used more than {budget_seconds:g} s of CPU together"
        idle += max(0.0, ran.wall_seconds - ran.waited_seconds - ran.cpu_seconds - 1)
        if failure is None and idle > IDLE_SECONDS:
            failure = "time_limit", f"the tests idled more than {IDLE_SECONDS:g} s together"
        judged = replace(
            judged,
            tests=place + 1,
            cpu_ms=max(judged.cpu_ms, round(ran.cpu_seconds * 1000)),
            wall_ms=max(judged.wall_ms, round(ran.wall_seconds * 1000)),
            max_rss_mib=max(judged.max_rss_mib, -(-ran.max_rss_bytes // MIB)),
        )
        if failure is not None:
            verdict, why = failure
            return replace(
                judged, verdict=verdict, failed_test=place, reason=f"test {place}: {why}"
            )
    if not judged.tests:
        raise ValueError("there are no tests: nothing can be said of a program")
    return replace(judged, reason=f"passed all tests ({judged.tests})")


def _unrun(verdict: VerdictWord, reason: str) -> Judged:
    return Judged(verdict, None, 0, 0, 0, 0, reason)


_Failure = tuple[VerdictWord, str]


def _run(
    code: str, test: Test, function: str | None, run_code: RunCode, limits: Limits
) -> tuple[Ran, _Failure | None]:
    if function is None:
        ran = run_code(code, test.input.encode("utf-8", "surrogatepass"), limits)
        failure = _ended_badly(ran, limits)
        if failure is None and (differs := difference(ran.stdout, test.output)) is not None:
            failure = "wrong_answer", differs
        return ran, failure
    expected = call.expected_value(test.output)
    stdin = call.payload(code, function, test.input)
    ran = run_code(script("function_harness"), stdin, limits)
    return ran, _ended_badly(ran, limits) or _wrong_result(ran, test.output, expected)


def _wrong_result(ran: Ran, text: str, expected: object) -> _Failure | None:
    result = call.returned(ran.stdout, text)
    if result is None:
        return "runtime_error", "ended before the function returned"
    if not call.equal(expected, result.value):
        return "wrong_answer", "the function returned another value than expected"
    return None


def _ended_badly(ran: Ran, limits: Limits) -> _Failure | None:
    match ran.status:
        case "cpu_limit":
            return "time_limit", f"used more than {limits.cpu_seconds:g} s of CPU"
        case "wall_limit":
            return "time_limit", f"ran longer than {limits.wall_seconds:g} s"
        case "memory_limit":
            return "memory_limit", f"used more than {limits.memory_bytes // MIB} MiB"
        case "output_limit":
            return "output_limit", f"wrote more than {limits.output_bytes // MIB} MiB"
        case "signaled":
            return "runtime_error", f"ended by {_signal(ran.signal)}"
        case _:  # exited
            return None if ran.exit_code == 0 else _bad_exit(ran)


def _signal(number: int | None) -> str:
    try:
        return signal.Signals(number or 0).name
    except ValueError:
        return f"signal {number}"


def _bad_exit(ran: Ran) -> _Failure:
    raised = _exception(ran.stderr) if ran.exit_code == 1 else None
    if raised == "MemoryError":
        return "memory_limit", "MemoryError: no more memory was given"
    if raised is not None:
        return "runtime_error", f"raised {raised}"
    return "runtime_error", f"exit status {ran.exit_code}"


def _exception(stderr: bytes) -> str | None:
    """The built-in exception in the last lines of a traceback.

    Only names that Python itself has are told: a name that a program made up could hold text of a
    test. A message may follow in lines of its own.
    """
    for line in reversed(stderr.rstrip().split(b"\n")[-_LAST_LINES:]):
        if found := _RAISED.match(line):
            name = found[1].decode("ascii", "replace")
            if _OUT_OF_MEMORY.fullmatch(name):
                return "MemoryError"
            if name in _EXCEPTIONS:
                return name
    return None
