"""Helpers of the tests that run programs through the whole tool: problems, replies, runs.

    lab = lab_of(tmp_path, server, {"sample-1": in_fence(SOLUTIONS["sample-1"].right)})
    assert lab.run(parts="lcb").code == 0

Programs run in the sandbox that this machine has, looked for once; a test that needs one is skipped
where there is none.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from engine import Lab, until
from lcb_solutions import SOLUTIONS
from model_server import RunningServer

from qualeval import code_workers
from qualeval.errors import NoSandboxError
from qualeval.graders import code as judging
from qualeval.records import Completion
from qualeval.sandbox import Chosen, Limits, Sandbox, choose_sandbox
from qualeval.sandbox.watch import descendants
from qualeval.tasks import lcb_rows
from qualeval.tasks.lcb_rows import ProblemItem

Json = dict[str, Any]

SAMPLES = Path(__file__).parents[1] / "tasks" / "samples" / "lcb.jsonl"

QUICK = Limits(cpu_seconds=0.6, wall_seconds=2.5)
"""Twenty times what a right program of the sample list needs; the slow ones are ended sooner."""

_grade = judging.grade


@cache
def _chosen() -> Chosen | str:
    try:
        return choose_sandbox()
    except NoSandboxError as error:
        return str(error)


def this_sandbox() -> Chosen:
    """The sandbox of this machine. Skips the test where there is none."""
    chosen = _chosen()
    if isinstance(chosen, str):
        pytest.skip(chosen)
    return chosen


def use_this_sandbox(patch: pytest.MonkeyPatch) -> Chosen:
    """Let every command of the test have the sandbox of this machine without attacking it anew."""
    chosen = this_sandbox()

    def choose(*, unsafe: bool = False) -> Chosen:
        return choose_sandbox(unsafe=True) if unsafe else chosen

    patch.setattr(code_workers, "choose_sandbox", choose)
    return chosen


def limit(patch: pytest.MonkeyPatch, limits: Limits = QUICK) -> None:
    """Judge with these limits, so that a program without end costs little time."""
    patch.setattr(judging, "grade", partial(_grade, limits=limits))


# Problems and replies


@cache
def samples() -> Mapping[str, Json]:
    """The rows of the sample list by id."""
    lines = SAMPLES.read_text(encoding="utf-8").splitlines()
    return {row["question_id"]: row for row in map(json.loads, lines)}


def problem(id: object, *tests: tuple[str, str], **fields: Any) -> Json:
    """A made-up row as published: these tests, the first one public."""
    cases = [{"input": given, "output": wanted, "testtype": "stdin"} for given, wanted in tests]
    return {
        "question_title": f"Title {id}",
        "question_content": f"[[item:{id}]] Print what is asked.",
        "platform": "atcoder",
        "question_id": id,
        "contest_id": "abc",
        "contest_date": "2026-01-01T00:00:00",
        "starter_code": "",
        "difficulty": "easy",
        "public_test_cases": json.dumps(cases[:1]),
        "private_test_cases": json.dumps(cases[1:]),
        "metadata": "{}",
    } | fields


def item_of(id: object, *tests: tuple[str, str]) -> ProblemItem:
    """A made-up problem; by default one that wants the number in its input twice as large."""
    return lcb_rows.item(problem(id, *(tests or [("1", "2"), ("21", "42")])))


def in_fence(code: str) -> str:
    """The reply of a model that says a word and gives a program."""
    return f"An idea.\n\n```python\n{code}\n```"


def completion(code: str) -> Completion:
    """The finished reply that gives this program."""
    return Completion(text=in_fence(code), finish_reason="stop")


def wrong(id: str, verdict: str) -> str:
    """A wrong program for a sample problem that earns this verdict."""
    return next(code for word, code in SOLUTIONS[id].wrong if word == verdict)


MIXED: Mapping[str, tuple[Json, str]] = {
    "sample-1": ({"text": in_fence(wrong("sample-1", "wrong_answer"))}, "wrong_answer"),
    "sample-2": ({"text": in_fence(wrong("sample-2", "runtime_error"))}, "runtime_error"),
    "sample-3": ({"text": in_fence(SOLUTIONS["sample-3"].right)}, "accepted"),
    "sample-4": ({"text": in_fence(wrong("sample-4", "time_limit"))}, "time_limit"),
    "sample-5": ({"text": "I do not know."}, "no_code"),
    "sample-6": ({"text": in_fence("def pond(:")}, "compile_error"),
    "sample-7": (
        {"text": in_fence(SOLUTIONS["sample-7"].right), "finish_reason": "length"},
        "cut_off",
    ),
    "sample-8": ({"text": in_fence("kept = bytearray(1 << 40)")}, "memory_limit"),
    "sample-9": ({"text": in_fence("while True:\n    print('x' * 10000)")}, "output_limit"),
    "sample-10": ({"text": in_fence(SOLUTIONS["sample-10"].right)}, "accepted"),
}
"""A reply for every sample problem, and the verdict that it earns: every one but infra_error."""

ALL_RIGHT: Mapping[str, Json] = {
    id: {"text": in_fence(solved.right)} for id, solved in SOLUTIONS.items()
}


# Runs


def key_of(id: str) -> str:
    """What addresses a sample problem in the server's script: a text that its prompt alone has."""
    return str(samples()[id]["question_content"]).strip()[:80]


def lab_of(folder: Path, server: RunningServer, replies: Mapping[str, Any]) -> Lab:
    """A card with the sample list of `lcb`, and the server's replies (steps) by id of the item."""
    lab = Lab(folder, server)
    lab.card["parts"] = {"lcb": {"list": "sample"}}
    return lab.script({key_of(id): step for id, step in replies.items()}, default={"text": "?"})


def own_lab(
    folder: Path, server: RunningServer, rows: Sequence[Json], replies: Mapping[str, Any]
) -> Lab:
    """A card with a list of one's own, and the server's replies by id of the item."""
    lab = Lab(folder, server)
    lab.card["parts"] = {"lcb": {"list": "mine.jsonl"}}
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "mine.jsonl").write_text(text, encoding="utf-8")
    return lab.script(replies, default={"text": "?"})


def words(lines: Mapping[str, Json]) -> dict[str, str]:
    """The verdict of each answer by id."""
    return {id: line["details"]["verdict"] for id, line in lines.items()}


# What is left behind


@contextmanager
def nothing_left() -> Iterator[None]:
    """Assert that the block leaves no process below this one, no open file, no thread of ours."""
    processes, files = set(descendants(os.getpid())), len(os.listdir("/proc/self/fd"))
    yield
    until(lambda: set(descendants(os.getpid())) <= processes, "all processes are gone")
    assert [t.name for t in threading.enumerate() if t.name.startswith("qualeval-code")] == []
    assert len(os.listdir("/proc/self/fd")) == files


def inside_of(sandbox: Sandbox) -> set[int]:
    """Process ids of a sandbox and of everything in it."""
    return {sandbox.pid, *descendants(sandbox.pid)} if sandbox.pid else set()
