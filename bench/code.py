"""How many tests of a program a second? `python bench/code.py [--quick]`. Exits 1 when a bound is
missed.

A program that adds two numbers is judged in the sandbox that a run would choose, each test a
process of its own, by one worker and by two. In the same run, in turn with it, a subprocess a test:
an interpreter that loads the same modules as the sandbox has ready, and one that loads none. Then
400 real programs on their public tests, where the reference data is at hand (`../shared/data`, or
`$QUALEVAL_REFERENCE_DATA`). See bench/README.md.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness import Row, reference_data, show

from qualeval.code_workers import cores
from qualeval.grade_file import grade_file
from qualeval.graders.code import Test, judge
from qualeval.graders.code.output import difference
from qualeval.records import Verdict
from qualeval.sandbox import Chosen, Sandbox, choose_sandbox
from qualeval.sandbox.inside.prelude import LOADED

DATA = reference_data("lcb")
PROBLEMS = DATA / "problems_v1_public_tests.jsonl"
PROGRAMS = DATA / "codes_o1-mini.jsonl"

LEAST_TIMES = 4.0
"""Tests per second, at least so many times those of a subprocess that loads the same modules."""

PROGRAM = "a, b = map(int, input().split())\nprint(a + b)\n"
TESTS = [Test(f"{n} {n + 1}\n", f"{2 * n + 1}\n") for n in range(20)]
"""As many as a problem of the published lists has, or fewer."""

WORKERS = (1, 2)
Problem = Callable[[], None]
"""Runs all of TESTS once."""


def in_sandbox(sandbox: Sandbox) -> Problem:
    """As the grader does it."""

    def problem() -> None:
        judged = judge(PROGRAM, TESTS, None, sandbox.run)
        if judged.verdict != "accepted":
            raise SystemExit(f"the sandbox gave {judged.verdict}: {judged.reason}")

    return problem


def in_subprocesses(interpreter: str, program: Path) -> Problem:
    """A subprocess a test, nothing around it."""
    command = [interpreter, "-I", "-S", str(program)]

    def problem() -> None:
        for test in TESTS:
            ran = subprocess.run(
                command, input=test.input.encode(), capture_output=True, check=True
            )
            if difference(ran.stdout, test.output) is not None:
                raise SystemExit("a subprocess gave another output")

    return problem


def seconds_per_test(workers: Sequence[Problem], pool: ThreadPoolExecutor, problems: int) -> float:
    """Wall seconds of one round, every worker at the same time, per test."""

    def work(problem: Problem) -> None:
        for _ in range(problems):
            problem()

    start = time.perf_counter()
    list(pool.map(work, workers))
    return (time.perf_counter() - start) / (len(TESTS) * problems * len(workers))


def measure(chosen: Chosen, folder: Path, rounds: int) -> tuple[list[Row], list[str]]:
    """The table, and the ratio to an interpreter that loads nothing."""
    prelude, bare = folder / "prelude.py", folder / "bare.py"
    prelude.write_text(f"import {', '.join(LOADED)}\n{PROGRAM}", encoding="utf-8")
    bare.write_text(PROGRAM, encoding="utf-8")
    rows, notes = [], []
    with contextlib.ExitStack() as stack:
        sandboxes = [stack.enter_context(chosen.sandbox()) for _ in range(max(WORKERS))]
        pool = stack.enter_context(ThreadPoolExecutor(max(WORKERS)))
        kinds: dict[str, tuple[list[Problem], int]] = {
            "sandbox": ([in_sandbox(sandbox) for sandbox in sandboxes], 5),
            "prelude": ([in_subprocesses(chosen.interpreter.executable, prelude)] * 2, 1),
            "bare": ([in_subprocesses(chosen.interpreter.executable, bare)] * 2, 2),
        }
        for problems, _ in kinds.values():  # sandboxes start, files are read once
            seconds_per_test(problems, pool, 1)
        for workers in WORKERS:
            taken: dict[str, list[float]] = {kind: [] for kind in kinds}
            for _ in range(rounds):
                for kind, (problems, times) in kinds.items():
                    taken[kind].append(seconds_per_test(problems[:workers], pool, times))
            # What else the machine does only adds: of each the least counts.
            best = {kind: min(times) for kind, times in taken.items()}
            name = f"{workers} worker{'s' if workers > 1 else ''}"
            rows.append(
                Row(
                    f"time of a test, {name}",
                    f"{1 / best['sandbox']:.0f} tests/s",
                    f"subprocess with the same modules {1 / best['prelude']:.0f} tests/s",
                    best["sandbox"] / best["prelude"],
                    1 / LEAST_TIMES,
                )
            )
            faster = {kind: best[kind] / best["sandbox"] for kind in ("prelude", "bare")}
            notes.append(
                f"{name}: {faster['prelude']:.1f} times the tests/s of that subprocess; "
                f"{faster['bare']:.1f} times those of a bare interpreter ({1 / best['bare']:.0f})"
            )
    return rows, notes


def tests_of(verdict: Verdict) -> int:
    """How many tests a program was judged on."""
    tests = (verdict.details or {})["tests"]
    assert isinstance(tests, int)
    return tests


def real_programs(folder: Path) -> str:
    """Wall time of the programs of a model on the public tests of their problems."""
    if not (PROBLEMS.is_file() and PROGRAMS.is_file()):
        return "real programs: skipped, no reference data (QUALEVAL_REFERENCE_DATA)"
    with PROBLEMS.open(encoding="utf-8") as lines:
        wanted = {json.loads(line)["question_id"] for line in lines}
    replies = folder / "replies.jsonl"
    with PROGRAMS.open(encoding="utf-8") as lines, replies.open("w", encoding="utf-8") as out:
        for row in map(json.loads, lines):
            if row["question_id"] in wanted:
                out.write(json.dumps({"id": row["question_id"], "code": row["code"]}) + "\n")
    start = time.perf_counter()
    graded = grade_file("lcb", replies, PROBLEMS)
    wall = time.perf_counter() - start
    verdicts = [reply.verdict for reply in graded if reply.verdict is not None]
    if len(verdicts) != len(wanted):
        raise SystemExit(f"{len(wanted) - len(verdicts)} programs have no verdict")
    tests = sum(map(tests_of, verdicts))
    accepted = sum(verdict.right for verdict in verdicts)
    return (
        f"{len(graded)} real programs ({accepted} accepted), {tests} tests: {wall:.1f} s with the "
        f"choice of a sandbox, {cores()} workers, {tests / wall:.0f} tests/s"
    )


def main() -> int:
    """Run all measurements."""
    parser = argparse.ArgumentParser(description="How many tests of a program a second?")
    parser.add_argument("--quick", action="store_true", help="two rounds: does the bench work?")
    quick = parser.parse_args().quick
    load = os.getloadavg()[0]
    chosen = choose_sandbox()
    with tempfile.TemporaryDirectory(prefix="qualeval-bench-") as name:
        rows, notes = measure(chosen, Path(name), rounds=2 if quick else 9)
        notes = [f"sandbox: {chosen.name}", *notes]
        notes.append("real programs: left out" if quick else real_programs(Path(name)))
    return show(rows, notes, load)


if __name__ == "__main__":
    sys.exit(main())
