"""What the benches share: the reference data, the card, processes, the server on a core of its own,
the table.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import model_server

QUESTION = "Which of these is the right one? " + "A made-up text as long as a question is. " * 12
OPTIONS = [f"option number {n} of ten, a line of some length" for n in range(10)]
Json = dict[str, Any]
CORES = sorted(os.sched_getaffinity(0))


def reference_data(name: str) -> Path:
    """A folder of the reference data, which may not be there: it is not in the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("QUALEVAL_REFERENCE_DATA", beside)) / name


@dataclass(frozen=True)
class Part:
    """A part and its own list of `items` questions."""

    name: str
    items: int


def write_card(folder: Path, base_url: str, slots: int, parts: Sequence[Part]) -> Path:
    """A card with a list of its own for every part."""
    for part in parts:
        rows = (
            {
                "id": f"{part.name}-{n}",
                "question": f"[[item:{part.name}-{n}]] {QUESTION}",
                "options": OPTIONS,
                "answer": "A",
                "category": f"subject {n % 14}",
            }
            for n in range(part.items)
        )
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{part.name}.jsonl").write_text(text, encoding="utf-8")
    server = {"base_url": base_url, "model": "test-model", "dialect": "vllm", "slots": slots}
    card = {
        "label": "bench",
        "server": server,
        "sampling": {"temperature": 1.0, "top_p": 1.0},
        "thinking": {
            mode: {"chat_template_kwargs": {"enable_thinking": mode == "on"}}
            for mode in ("off", "on")
        },
        "parts": {part.name: {"list": f"{part.name}.jsonl"} for part in parts},
    }
    path = folder / "card.json"
    path.write_text(json.dumps(card), encoding="utf-8")
    return path


@dataclass(frozen=True)
class Ended:
    """A process that has ended: its last line if that is JSON, its peak memory in MB, and how many
    seconds it was ready to run while others had the core.
    """

    said: Json
    peak: float
    waited: float


def wait_for(arguments: Sequence[str]) -> Ended:
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(arguments, stdout=out, stderr=out)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        waited = waited_for_core(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read().decode()
    if status:
        raise SystemExit(f"{' '.join(arguments)}\nended with {process.returncode}:\n{text}")
    last = text.rstrip().rpartition("\n")[2]
    said = json.loads(last) if last.startswith("{") else {}
    return Ended(said, usage.ru_maxrss / 1024, waited)


def waited_for_core(pid: int) -> float:
    """Seconds that a process stood in the queue of its core (0 where Linux does not count them)."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


@contextlib.contextmanager
def running(slots: int, **options: Any) -> Iterator[model_server.RunningServer]:
    """A test server on the first core; this process and all it starts use the second."""
    with model_server.running(
        slots=slots, record_bodies=False, context=1_000_000, **options
    ) as server:
        os.sched_setaffinity(server.process.pid, CORES[:1])
        os.sched_setaffinity(0, CORES[1:2] or CORES)
        yield server


@dataclass(frozen=True)
class Row:
    """One line of the table: `value` may be at most `bound`."""

    what: str
    measured: str
    against: str
    value: float
    bound: float
    unit: str = ""

    @property
    def ok(self) -> bool:
        return self.value <= self.bound


def show(rows: Sequence[Row], notes: Sequence[str], load: float) -> int:
    """Print the table; the exit code: 1 when a bound is missed."""
    print(f"{len(CORES)} cores, Python {sys.version.split()[0]}, load before {load:.1f}")
    cells = [("what", "measured", "against", "ratio", "bound", "")]
    for row in rows:
        value, bound = f"{row.value:.3f}{row.unit}", f"{row.bound:g}{row.unit}"
        verdict = "ok" if row.ok else "MISSED"
        cells.append((row.what, row.measured, row.against, value, bound, verdict))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        padded = (f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True))
        print("  ".join(padded).rstrip())
    for note in notes:
        print(f"note: {note}")
    return 0 if all(row.ok for row in rows) else 1
