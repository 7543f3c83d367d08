"""Helpers of the end-to-end tests: a list, a card, the command, the files of a run.

    lab = Lab(tmp_path, server)
    lab.list_of(40)                                   # mine.jsonl: 40 questions whose key is B
    ended = lab.run()                                 # qualeval run card.json, in this process
    assert ended.code == 0
    assert lab.job().summary("mmlupro")["right"] == 40

Every question text holds `[[item:ID]]`, by which the test server's script addresses it. Nothing
here sleeps to be on time: `until` looks at a condition again and again, up to a limit.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from model_server import PATIENCE as PATIENCE
from model_server import RunningServer
from typer.testing import CliRunner

from qualeval.cli import app

Json = dict[str, Any]
Process = subprocess.Popen[str]

GONE_PORT = 9
"""Nobody listens on the discard port of a test machine."""


def until(condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    """Return once `condition()` is true; fail with `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.005)


@contextlib.contextmanager
def beside(steps: Callable[[], None]) -> Iterator[None]:
    """Do `steps` in a thread while the block runs; when they fail the test does."""
    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(steps)
        yield
        done.result()


@contextlib.contextmanager
def served_once_all_are_there(*expected: tuple[RunningServer, int]) -> Iterator[None]:
    """No server serves anything before each has so many requests; then they serve all."""

    def wait_and_serve() -> None:
        try:
            for server, count in expected:
                until(lambda: server.summary()["requests"] >= count, f"{count} requests")  # noqa: B023
        finally:
            for server, _ in expected:
                server.serve(None)

    for server, _ in expected:
        server.serve(0)
    with beside(wait_and_serve):
        yield


def json_lines(path: Path) -> list[Json]:
    """Every whole line of a JSON-lines file; none when it is not there."""
    if not path.exists():
        return []
    *lines, rest = path.read_bytes().split(b"\n")
    assert not rest, f"{path.name} ends inside a line"
    return [json.loads(line) for line in lines]


def whole_lines(path: Path) -> int:
    """How many lines a file that another process writes has by now."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


@dataclass(frozen=True)
class Ended:
    """How a command ended, and all it printed."""

    code: int
    out: str
    err: str

    @property
    def screen(self) -> str:
        return self.out + self.err


@dataclass(frozen=True)
class Job:
    """The folder of one run."""

    folder: Path

    def gen(self, part: str = "mmlupro") -> list[Json]:
        return json_lines(self.folder / f"{part}.gen.jsonl")

    def answers(self, part: str = "mmlupro") -> dict[str, Json]:
        """Answers by id (the last repeat, where there are several)."""
        return {str(line["id"]): line for line in json_lines(self.folder / f"{part}.jsonl")}

    def errors(self, part: str = "mmlupro") -> list[Json]:
        return json_lines(self.folder / f"{part}.errors.jsonl")

    def summary(self, part: str = "mmlupro") -> Json:
        return self._object(f"{part}.summary.json")

    def contract(self, part: str = "mmlupro") -> Json:
        return self._object(f"{part}.contract.json")

    def sessions(self, part: str = "mmlupro") -> list[Json]:
        sessions: list[Json] = self.contract(part)["sessions"]
        return sessions

    @property
    def log(self) -> str:
        return (self.folder / "run.log").read_text(encoding="utf-8")

    def files(self) -> Iterator[Path]:
        return (path for path in self.folder.rglob("*") if path.is_file())

    def _object(self, name: str) -> Json:
        value: Json = json.loads((self.folder / name).read_text(encoding="utf-8"))
        return value


@dataclass
class Lab:
    """A folder with a card and a list, and the server that the card names.

    `card` is the card as it will be written; tests change it in place. Waits are short.
    """

    folder: Path
    server: RunningServer | None = None
    card: Json = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.card:
            self.card = {
                "label": "job",
                "server": {"model": "test-model", "dialect": "vllm", "slots": 4},
                "thinking": {
                    "off": {"chat_template_kwargs": {"enable_thinking": False}},
                    "on": {"chat_template_kwargs": {"enable_thinking": True}},
                },
                "parts": {"mmlupro": {"list": "mine.jsonl"}},
                "retries": {"attempts": 2, "max_wait": 0.05},
            }
        if self.server is not None:
            self.card["server"]["base_url"] = self.server.base_url

    def list_of(self, items: int | Iterable[Any], name: str = "mine.jsonl") -> Lab:
        """Write a list of questions whose key is B: so many, or with these ids."""
        ids = range(items) if isinstance(items, int) else items
        rows = (
            {
                "id": id,
                "question": f"[[item:{id}]] Which one?",
                "options": ["red", "green", "blue"],
                "answer": "B",
            }
            for id in ids
        )
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (self.folder / name).write_text(text, encoding="utf-8")
        return self

    def script(self, items: Mapping[str, Any] | None = None, default: Any = None) -> Lab:
        """Give the server a new script and forget what it saw. By default it answers B; with {}
        as the default a letter by hash, right or wrong.
        """
        assert self.server is not None
        default = {"text": "B"} if default is None else default
        self.server.script({"default": default, "items": dict(items or {})})
        self.server.reset()
        return self

    def write_card(self) -> Path:
        path = self.folder / "card.json"
        path.write_text(json.dumps(self.card), encoding="utf-8")
        return path

    def command(self, *options: str, parts: str | None = "mmlupro") -> list[str]:
        """Arguments of `qualeval run` on the card, which is written anew."""
        runs = [] if "--runs" in options else ["--runs", str(self.folder / "runs")]
        chosen = ["--parts", parts] if parts else []
        return ["run", str(self.write_card()), *chosen, *runs, *options]

    def run(self, *options: str, parts: str | None = "mmlupro") -> Ended:
        """`qualeval run` in this process."""
        return qualeval(*self.command(*options, parts=parts))

    def start(
        self,
        *options: str,
        parts: str | None = "mmlupro",
        sigint: signal.Handlers = signal.SIG_DFL,
    ) -> Process:
        """`qualeval run` as a process of its own; see `ending`."""
        return start_qualeval(*self.command(*options, parts=parts), sigint=sigint)

    def job(self, name: str = "job") -> Job:
        return Job(self.folder / "runs" / name)

    # What the server saw

    def asked(self) -> list[Json]:
        """Records of every chat request, in order of arrival."""
        assert self.server is not None
        records: list[Json] = self.server.stats()["requests"]
        return records

    def attempts(self) -> Counter[str]:
        """Chat requests by item."""
        return Counter(record["item"] for record in self.asked())

    def requests(self) -> int:
        assert self.server is not None
        count: int = self.server.summary()["requests"]
        return count


def qualeval(*arguments: str) -> Ended:
    """The command in this process: the same code as the installed one, 40 ms in place of 1 s."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        result = CliRunner().invoke(app, list(arguments))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ended(result.exit_code, result.stdout, result.stderr)


def start_qualeval(*arguments: str, sigint: signal.Handlers = signal.SIG_DFL) -> Process:
    """The command as a process of its own, Ctrl-C being what it is for a command in front.

    A script's `command &` starts it with SIGINT ignored, and so may whoever runs the tests.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "qualeval", *arguments],
        preexec_fn=lambda: signal.signal(signal.SIGINT, sigint),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1"},
    )


def ended(process: Process, seconds: float = PATIENCE) -> Ended:
    """Wait for a started command."""
    with ending(process):
        out, err = process.communicate(timeout=seconds)
    return Ended(process.returncode, out, err)


@contextlib.contextmanager
def ending(process: Process) -> Iterator[Process]:
    """Never leave a started command behind, whatever the test does."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def without_times(records: Sequence[Json], *more: str) -> list[Json]:
    """Records less what differs between two equal runs: times, and how often it was tried."""
    timed = ("seconds", "time_to_first_token", "ended", "attempts", *more)
    return [{k: v for k, v in record.items() if k not in timed} for record in records]


def most_at_once(records: Sequence[Json]) -> int:
    """The most of these requests that were in a slot of the server at one moment."""
    starts = [(record["start"], 1) for record in records if record["start"] is not None]
    ends = [(record["end"], -1) for record in records if record["start"] is not None]
    busy = most = 0
    for _, change in sorted(starts + ends):
        busy += change
        most = max(most, busy)
    return most
