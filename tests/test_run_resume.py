"""Nothing is lost and nothing is asked twice, however a run ends; no row joins another setting.

End to end, against the project's test server. Ids in docstrings are those of `known-faults.jsonl`.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from engine import (
    GONE_PORT,
    PATIENCE,
    Ended,
    Job,
    Json,
    Lab,
    Process,
    ended,
    ending,
    json_lines,
    until,
    whole_lines,
    without_times,
)
from model_server import RunningServer, running

from qualeval.client import ModelClient
from qualeval.records import Completion, Request

ITEMS = 40
ALL = {str(i) for i in range(ITEMS)}
UNTIMED = ("started", "finished", "wall_time", "in_flight", "median_seconds")
"""Fields of a summary that differ between two runs that are equal otherwise."""


@pytest.fixture(scope="module")
def slow() -> Iterator[RunningServer]:
    """40 ms a request, letters by hash: some right, some wrong."""
    with running(slots=4, service=0.04) as server:
        yield server


@pytest.fixture(scope="module")
def quick() -> Iterator[RunningServer]:
    with running(slots=4) as server:
        yield server


@pytest.fixture
def slow_lab(tmp_path: Path, slow: RunningServer) -> Lab:
    return Lab(tmp_path, slow).list_of(ITEMS).script(default={})


@pytest.fixture
def lab(tmp_path: Path, quick: RunningServer) -> Lab:
    return Lab(tmp_path, quick).script(default={})


def ids(job: Job, part: str = "mmlupro") -> set[str]:
    return {str(line["id"]) for line in job.gen(part)}


AHEAD = 12
"""So many answers more than a test waits for are served before the server waits too: a run is
stopped while it works, and never after its end, however late the test looks.
"""


@contextmanager
def stopped_after(
    lab: Lab, count: int, *options: str, sigint: signal.Handlers = signal.SIG_DFL
) -> Iterator[Process]:
    """Start a run and wait until it has that many answers on disk; it cannot end by itself."""
    assert lab.server is not None
    lab.server.serve(count + AHEAD)
    with ending(lab.start(*options, sigint=sigint)) as process:
        after_lines(lab, count, process)
        yield process


def after_lines(lab: Lab, count: int, process: Process) -> None:
    """Wait until the run has that many answers on disk."""
    path = lab.job().folder / "mmlupro.gen.jsonl"

    def reached() -> bool:
        assert process.poll() is None, "the run ended before it could be stopped"
        return whole_lines(path) >= count

    until(reached, f"{count} answers on disk")


def assert_goes_on(lab: Lab, on_disk: set[str]) -> Ended:
    """Run again: exactly what is not on disk is asked, once, and the part is complete."""
    assert lab.server is not None
    lab.server.reset()
    again = lab.run()
    assert again.code == 0, again.screen
    assert lab.attempts() == dict.fromkeys(ALL - on_disk, 1)
    assert lab.job().summary()["status"] == "ok"
    assert ids(lab.job()) == ALL and len(lab.job().gen()) == ITEMS
    return again


# ------------------------------------------------------------------ ended from outside


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_signal_ends_the_run_cleanly_and_the_same_command_goes_on(
    slow_lab: Lab, number: signal.Signals
) -> None:
    """res-04: status 130, the session closed, the summary incomplete, every finished row kept."""
    with stopped_after(slow_lab, 12) as process:
        process.send_signal(number)
        done = ended(process)
    job = slow_lab.job()
    assert done.code == 130
    assert "run the same command again to go on" in done.err
    assert "Traceback" not in done.screen
    on_disk = ids(job)
    assert 12 <= len(on_disk) < ITEMS and len(on_disk) == len(job.gen())
    [session] = job.sessions()
    assert session["ended"] is not None and session["wall_time"] > 0
    summary = job.summary()
    assert summary["status"] == "incomplete" and summary["accuracy"] is None
    assert summary["answered"] == len(on_disk) == len(job.answers())
    assert summary["incomplete_because"] == f"{ITEMS - len(on_disk)} not asked yet"
    assert "stopped: interrupted" in job.log
    answered = {r["item"] for r in slow_lab.asked() if r["outcome"] == "answered"}
    assert len(answered - on_disk) <= 4, "at most what was in flight is lost"
    assert_goes_on(slow_lab, on_disk)
    assert len(job.sessions()) == 2


def test_sigterm_ends_a_run_that_a_script_put_into_the_background(slow_lab: Lab) -> None:
    """res-04: `qualeval run card.json &` in a script starts with SIGINT ignored; a polite kill
    must end it all the same.
    """
    with stopped_after(slow_lab, 4, sigint=signal.SIG_IGN) as process:
        process.send_signal(signal.SIGTERM)
        done = ended(process)
    assert done.code == 130 and "Traceback" not in done.screen
    assert len(slow_lab.job().gen()) < ITEMS
    assert slow_lab.job().sessions()[0]["ended"] is not None


def test_interrupt_does_not_wait_for_requests_that_hang(
    tmp_path: Path, quick: RunningServer
) -> None:
    """All slots hang, for longer than a test has patience: Ctrl-C ends it now."""
    lab = Lab(tmp_path, quick).list_of(8).script(default={"fault": "hang"})
    with ending(lab.start()) as process:
        until(lambda: lab.requests() == 4, "four requests in flight")
        [session] = lab.job().sessions()
        assert session["ended"] is None and session["slots"] == 4
        assert session["command"].endswith(f"--runs {lab.folder / 'runs'}")
        assert lab.job().contract()["conditions"]["list"]["items"] == 8
        process.send_signal(signal.SIGINT)
        done = ended(process)
    assert done.code == 130
    assert lab.job().sessions()[0]["ended"] is not None
    assert lab.job().summary()["incomplete_because"] == "8 not asked yet"


def test_contract_is_on_disk_before_the_first_request(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever ends a run afterwards: what its rows were asked under is known."""
    contract = lab.job().folder / "mmlupro.contract.json"
    there: list[bool] = []
    original = ModelClient.complete

    async def complete(self: ModelClient, request: Request, extra: Any) -> Completion:
        there.append(contract.exists())
        return await original(self, request, extra)

    monkeypatch.setattr(ModelClient, "complete", complete)
    assert lab.list_of(3).run().code == 0
    assert there == [True] * 3


def test_interrupt_while_the_server_loads_ends_at_once(tmp_path: Path) -> None:
    """Before the first request there is nothing to keep, and nothing to wait for."""
    with running(slots=4, loading_seconds=600) as server:
        lab = Lab(tmp_path, server).list_of(3)
        lab.card["retries"] = {"attempts": 2, "max_wait": 600}
        with ending(lab.start()) as process:
            until((lab.job().folder / "card.json").exists, "the run has begun")
            # So early the program still imports, and CPython drops an interrupt that falls into an
            # import lock's own callback: a person presses the keys again.
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE / 2)
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            done = ended(process)
    assert done.code == 130 and "Traceback" not in done.screen


def test_interrupt_while_the_server_is_gone_ends_at_once(tmp_path: Path) -> None:
    """Waiting for a server that may come back is no reason not to end."""
    with running(slots=4, down={"after": 5}) as server:
        lab = Lab(tmp_path, server).list_of(ITEMS)
        lab.card["retries"] = {"attempts": 2, "max_wait": 600}
        with ending(lab.start()) as process:
            log = lab.job().folder / "run.log"
            until(
                lambda: log.exists() and "server does not answer" in log.read_text(),
                "the run waits for the server",
            )
            process.send_signal(signal.SIGINT)
            done = ended(process)
    assert done.code == 130
    assert len(lab.job().gen()) == 5


def test_reader_of_the_progress_lines_that_goes_away_ends_no_run(slow_lab: Lab) -> None:
    """`qualeval run .. 2>&1 | head -1`: all is asked and written, only nobody reads it."""
    with ending(slow_lab.start()) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        process.stderr.close()
        process.wait(PATIENCE)
    assert ids(slow_lab.job()) == ALL
    assert slow_lab.job().summary()["status"] == "ok"


@pytest.mark.parametrize("count", [1, 17])
def test_run_killed_in_the_middle_ends_as_an_unbroken_one(slow_lab: Lab, count: int) -> None:
    """res-04: `kill -9` loses what was in flight, asks nothing again that was on disk, and the
    final answers and summary are those of an unbroken run.
    """
    with stopped_after(slow_lab, count) as process:
        process.kill()
        process.communicate()
    job = slow_lab.job()
    on_disk = ids(job)
    assert count <= len(on_disk) < ITEMS
    assert job.sessions()[0]["ended"] is None
    assert not (job.folder / "summary.json").exists()
    assert_goes_on(slow_lab, on_disk)

    assert slow_lab.run("--job", "unbroken").code == 0
    whole = slow_lab.job("unbroken")
    broken_rows = json_lines(job.folder / "mmlupro.jsonl")
    whole_rows = json_lines(whole.folder / "mmlupro.jsonl")
    assert without_times(broken_rows) == without_times(whole_rows)
    broken, unbroken = (without_times([j.summary()], *UNTIMED)[0] for j in (job, whole))
    assert broken == unbroken
    assert 0 < broken["right"] < ITEMS
    wall = job.summary()["wall_time"]
    assert 0 < wall < 60, "the time of both sessions, the one that was killed by its last answer"


def test_run_killed_again_and_again_still_asks_each_item_once(slow_lab: Lab) -> None:
    """`kill -9` at four moments, two parts in one pool: what is on disk is never asked again."""
    slow_lab.card["parts"]["gpqa"] = {"list": "gpqa.jsonl"}
    slow_lab.list_of([f"g{i}" for i in range(ITEMS)], "gpqa.jsonl")
    job, parts = slow_lab.job(), ("mmlupro", "gpqa")
    paths = [job.folder / f"{part}.gen.jsonl" for part in parts]
    assert slow_lab.server is not None
    for _ in range(4):
        on_disk = ids(job) | ids(job, "gpqa")
        slow_lab.server.reset()
        slow_lab.server.serve(7 + AHEAD)
        with ending(slow_lab.start(parts="mmlupro,gpqa")) as process:
            goal = len(on_disk) + 7
            until(lambda: sum(map(whole_lines, paths)) >= goal, f"{goal} answers")  # noqa: B023
            process.kill()
            process.communicate()
        assert not on_disk & set(slow_lab.attempts())
    slow_lab.server.serve(None)
    assert slow_lab.run(parts="mmlupro,gpqa").code == 0
    for part in parts:
        assert len(job.gen(part)) == len(ids(job, part)) == ITEMS
        assert job.summary(part)["status"] == "ok"


def test_server_that_is_gone_at_a_later_start_leaves_all_as_it_was(lab: Lab) -> None:
    """Exit 1, what is there is shown and kept, and no session is added."""
    lab.list_of(6)
    assert lab.run("--limit", "4").code == 1
    before = lab.job().gen(), lab.job().sessions()
    lab.card["server"]["base_url"] = f"http://127.0.0.1:{GONE_PORT}/v1"
    stopped = lab.run()
    assert stopped.code == 1
    assert "does not answer" in stopped.err and "4 of 6 done" in stopped.err
    assert (lab.job().gen(), lab.job().sessions()) == before


def test_two_runs_on_one_job_at_once(slow_lab: Lab) -> None:
    """The second is refused with exit 2 and disturbs nothing; another job may run."""
    assert slow_lab.server is not None
    with stopped_after(slow_lab, 2) as process:
        second = slow_lab.run()
        assert second.code == 2
        assert "another qualeval is writing to this job" in second.err and "--job" in second.err
        assert process.poll() is None
        slow_lab.server.serve(None)
        done = ended(process)
    assert done.code == 0
    assert slow_lab.attempts() == dict.fromkeys(ALL, 1)


# ------------------------------------------------------------------ damaged files


def finished_job(lab: Lab, items: Any = 3) -> Job:
    lab.list_of(items)
    assert lab.run().code == 0
    return lab.job()


def torn_positions(data: bytes) -> list[int]:
    """Every byte position of the last line at which a crash can have cut it off."""
    start = data[:-1].rfind(b"\n") + 1
    return list(range(start, len(data)))


def test_torn_last_line_is_cut_at_every_byte_position(lab: Lab) -> None:
    """Wherever it was torn, the lines before it stay and its item counts as not there."""
    from qualeval.runfolder import RawReplies, RunFolder

    job = finished_job(lab)
    path = job.folder / "mmlupro.gen.jsonl"
    data = path.read_bytes()
    kept = data[: torn_positions(data)[0]]
    for position in torn_positions(data):
        path.write_bytes(data[:position])
        with RunFolder(job.folder) as files:
            said = files.repair("mmlupro")
        assert path.read_bytes() == kept
        assert len(RawReplies(path)) == 2
        torn = position - len(kept)
        assert [str(torn) in line for line in said] == ([True] if torn else [])


@pytest.mark.parametrize("where", [0, 1, 0.5, -2, -1])
def test_torn_last_line_is_said_and_its_item_asked_again(lab: Lab, where: int | float) -> None:
    """Torn before it began, after one byte, in the middle, or with only its line feed missing."""
    job = finished_job(lab)
    before = without_times(list(job.answers().values()))
    path = job.folder / "mmlupro.gen.jsonl"
    data = path.read_bytes()
    positions = torn_positions(data)
    index = int(len(positions) * where) if isinstance(where, float) else where
    path.write_bytes(data[: positions[index]])
    lost = json.loads(data.splitlines()[-1])["id"]
    lab.script(default={})

    again = lab.run()

    assert again.code == 0
    assert lab.attempts() == {str(lost): 1}
    torn = positions[index] - positions[0]
    if torn:
        assert f"cut a torn last line of {torn} byte" in again.err
        assert f"cut a torn last line of {torn} byte" in job.log
    assert without_times(list(job.answers().values())) == before
    assert len(job.gen()) == 3


def test_torn_line_of_the_errors_file_is_repaired_too(lab: Lab) -> None:
    """A file that only grows can be torn, whichever it is."""
    lab.list_of(3).script({"1": {"status": 400}})
    assert lab.run().code == 1
    path = lab.job().folder / "mmlupro.errors.jsonl"
    path.write_bytes(path.read_bytes() + b'{"id":2,"rep')
    lab.script()
    again = lab.run()
    assert again.code == 0 and "mmlupro.errors.jsonl: cut a torn last line" in again.err
    assert lab.attempts() == {"1": 1}


@pytest.mark.parametrize(
    "line",
    [b'{"id": 1, "torn', b"[]", b"null", b'{"id": 1}', b"", b"\xff\xfe", b"[" * 100_000],
    ids=["no_json", "list", "null", "fields_missing", "empty", "no_utf8", "deep"],
)
def test_corrupt_line_in_the_middle_is_named_and_nothing_is_asked(lab: Lab, line: bytes) -> None:
    """Exit 2 with file and line: what was answered is not thrown away in silence."""
    job = finished_job(lab)
    path = job.folder / "mmlupro.gen.jsonl"
    lines = path.read_bytes().split(b"\n")
    lines[1] = line
    path.write_bytes(b"\n".join(lines))
    damaged = path.read_bytes()
    lab.script()
    refused = lab.run()
    assert refused.code == 2
    assert "mmlupro.gen.jsonl:2" in refused.err and len(refused.err) < 1000
    assert lab.requests() == 0 and path.read_bytes() == damaged


def test_answer_that_occurs_twice_counts_once_the_first(lab: Lab) -> None:
    """One valid value per measurement, never best of."""
    job = finished_job(lab)
    before = job.answers()
    path = job.folder / "mmlupro.gen.jsonl"
    twice = json.loads(path.read_bytes().split(b"\n")[0]) | {"text": "none of them"}
    with path.open("a") as file:
        file.write(json.dumps(twice) + "\n")
    assert lab.run().code == 0
    assert job.answers() == before and job.summary()["n"] == 3


def test_contract_that_is_no_contract_is_named(lab: Lab) -> None:
    """Exit 2 and the file's name; the answers stay untouched."""
    job = finished_job(lab)
    path = job.folder / "mmlupro.contract.json"
    path.write_text(path.read_text()[:100])
    lab.script()
    refused = lab.run()
    assert refused.code == 2 and "mmlupro.contract.json" in refused.err
    assert lab.requests() == 0


# ------------------------------------------------------------------ no room


def fill_after(room: int) -> Callable[[int, bytes], int]:
    """An os.write with room for so many bytes; then a short write and ENOSPC, as a disk does."""
    write = os.write
    left = room

    def limited(file: int, data: bytes) -> int:
        nonlocal left
        fits = min(left, len(data))
        left -= fits
        if fits == 0 and data:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(file, data[:fits])

    return limited


@pytest.mark.parametrize("room", [0, 30, 100, 700, 2000, 5001])
def test_full_disk_ends_the_run_and_keeps_everything_before(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """Injected ENOSPC after so many bytes: exit 1 that says so, whole lines only, and the same
    command goes on when there is room.
    """
    lab.list_of(ITEMS)
    with monkeypatch.context() as patch:
        patch.setattr("qualeval.runfolder.os.write", fill_after(room))
        stopped = lab.run()
    assert stopped.code == 1
    assert "No space left on device" in stopped.err and "Traceback" not in stopped.screen
    on_disk = ids(lab.job())
    assert len(on_disk) == len(lab.job().gen()) < ITEMS
    answered = {r["item"] for r in lab.asked() if r["outcome"] == "answered"}
    assert len(answered - on_disk) <= 4, "only what was in flight is lost"
    assert_goes_on(lab, on_disk)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 96 KiB of its own; tests that need one are skipped where none is allowed."""
    path = tmp_path / "disk"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", str(path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no permission to mount a tmpfs")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


@pytest.mark.parametrize("filler", [48, 60, 72, 76, 80, 84, 88, 92])
def test_real_full_disk_ends_the_run_and_keeps_everything_before(
    lab: Lab, small_disk: Path, filler: int
) -> None:
    """The same on a file system that is really full, at whichever file it happens."""
    (small_disk / "filler").write_bytes(b"x" * filler * 1024)
    (lab.folder / "runs").symlink_to(small_disk, target_is_directory=True)
    lab.list_of(ITEMS)
    stopped = lab.run()
    assert stopped.code == 1
    assert "No space left on device" in stopped.err and "Traceback" not in stopped.screen
    (small_disk / "filler").unlink()
    assert not list(small_disk.rglob("*.new"))
    assert_goes_on(lab, ids(lab.job()))


def test_folder_of_runs_that_cannot_be_written_is_said_before_anything_is_sent(
    lab: Lab, small_disk: Path
) -> None:
    """A read-only file system: exit 1 and the path, no request."""
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    lab.list_of(3)
    refused = lab.run("--runs", str(small_disk / "runs"))
    assert refused.code == 1
    assert str(small_disk / "runs") in refused.err and "Read-only file system" in refused.err
    assert lab.requests() == 0


def test_file_in_the_place_of_the_folder_of_runs_is_named(lab: Lab) -> None:
    """Exit 1 and the path, no request."""
    lab.list_of(3)
    (lab.folder / "file").write_text("in the way")
    for runs in (lab.folder / "file", lab.folder / "file" / "runs"):
        refused = lab.run("--runs", str(runs))
        assert refused.code == 1
        assert str(runs) in refused.err and "Traceback" not in refused.screen
    assert lab.requests() == 0


# ------------------------------------------------------------------ other conditions


def change_list(lab: Lab) -> None:
    path = lab.folder / "mine.jsonl"
    path.write_text(path.read_text().replace("Which one?", "Which one is it?", 1))


def change(section: str, value: Any) -> Callable[[Lab], None]:
    def apply(lab: Lab) -> None:
        lab.card[section] = value

    return apply


def change_in(section: str, **values: Any) -> Callable[[Lab], None]:
    def apply(lab: Lab) -> None:
        target = lab.card["parts"]["mmlupro"] if section == "part" else lab.card[section]
        target.update(values)

    return apply


CHANGES: dict[str, tuple[Callable[[Lab], object], list[str]]] = {
    "temperature": (
        change("sampling", {"temperature": 0.0}),
        ["sampling.temperature: there 1.0, here 0.0"],
    ),
    "sampling_field_more": (
        change("sampling", {"temperature": 1.0, "top_k": 20}),
        ["sampling.top_k: there none, here 20"],
    ),
    "max_tokens": (change_in("part", max_tokens=64), ["max_tokens: there 48, here 64"]),
    "streamed": (change_in("part", max_tokens=2048), ["max_tokens", "request.stream"]),
    "model": (
        change_in("server", model="other-model"),
        ["model: there 'test-model', here 'other-model'"],
    ),
    "dialect": (change_in("server", dialect="openai"), ["dialect: there 'vllm', here 'openai'"]),
    "thinking": (
        change("thinking", {"off": {"chat_template_kwargs": {"thinking": False}}}),
        ["thinking_object.chat_template_kwargs.enable_thinking"],
    ),
    "seed": (change("seed", 43), ["seed: there 42, here 43"]),
    "repeats": (change_in("part", repeats=2), ["repeats: there 1, here 2"]),
    "list_text": (change_list, ["list.sha256"]),
    "list_longer": (lambda lab: lab.list_of(7), ["list.items: there 6, here 7"]),
    "list_other": (change_in("part", list="sample"), ["list.id", "list.kind"]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changed_condition_is_refused_with_its_name_and_nothing_is_sent(
    lab: Lab, name: str
) -> None:
    """res-02: rows of two settings never share a file."""
    lab.card["sampling"] = {"temperature": 1.0}
    lab.list_of(6)
    assert lab.run("--limit", "4").code == 1
    before = {path: path.read_bytes() for path in lab.job().files()}
    lab.script()
    apply, fields = CHANGES[name]
    apply(lab)

    refused = lab.run()

    assert refused.code == 2
    assert "other conditions" in refused.err and "--job" in refused.err
    for field in fields:
        assert field in refused.err
    assert lab.requests() == 0
    assert {path: path.read_bytes() for path in lab.job().files()} == before


def test_what_is_no_condition_never_refuses(lab: Lab, slow: RunningServer) -> None:
    """Another server, slots, schedule, time limits, notes: the run goes on."""
    lab.list_of(6)
    assert lab.run("--limit", "4").code == 1
    slow.script({})
    slow.reset()
    lab.server = slow
    lab.card["server"] |= {"base_url": slow.base_url, "slots": 2, "slots_source": "my notes"}
    lab.card["timeouts"] = {"total": 100}
    lab.card["notes"] = "changed"
    assert lab.run("--schedule", "packed").code == 0
    assert sum(lab.attempts().values()) == 2
    assert [session["slots"] for session in lab.job().sessions()] == [4, 2]


def test_restarted_server_with_other_models_is_warned_of(lab: Lab, tmp_path: Path) -> None:
    """Sessions never refuse: a changed list of models and engine version stand in the table."""
    lab.list_of(6)
    assert lab.run("--limit", "4").code == 1
    with running(slots=4, version="0.99.0", aliases=["second-name"]) as server:
        lab.card["server"]["base_url"] = server.base_url
        done = lab.run()
    assert done.code == 0
    assert "the server's models changed between two sessions" in done.out
    assert "the server's engine_version changed between two sessions" in done.out
    assert "All parts on one server start: no" in done.out


# ------------------------------------------------------------------ limit, repeats, repetition


def test_limited_part_is_incomplete_and_the_same_command_without_it_asks_the_rest(
    lab: Lab,
) -> None:
    """res-03: a trial run is never taken for the finished one."""
    lab.list_of(12)
    first = lab.run("--limit", "5")
    assert first.code == 1
    assert "incomplete (limit 5)" in first.out and "5 of 12 done" in first.err
    assert lab.job().summary()["accuracy"] is None
    again = lab.run("--limit", "5")
    assert again.code == 1 and "incomplete (limit 5)" in again.out
    assert lab.attempts() == {str(i): 1 for i in range(5)}
    whole = lab.run()
    assert whole.code == 0 and "incomplete" not in whole.out
    assert lab.attempts() == {str(i): 1 for i in range(12)}
    assert [session["items"] for session in lab.job().sessions()] == [5, 12]


def test_limit_of_the_card_is_no_condition_either(lab: Lab) -> None:
    """`parts.<part>.limit` says what to ask now."""
    lab.card["parts"]["mmlupro"]["limit"] = 3
    lab.list_of(6)
    assert lab.run().code == 1
    del lab.card["parts"]["mmlupro"]["limit"]
    assert lab.run().code == 0
    assert lab.attempts() == {str(i): 1 for i in range(6)}


def test_complete_part_is_not_asked_again_and_prints_its_table(lab: Lab) -> None:
    """Not even the server is needed."""
    lab.list_of(6)
    first = lab.run()
    before = lab.job().gen()
    sessions = lab.job().sessions()
    lab.card["server"]["base_url"] = f"http://127.0.0.1:{GONE_PORT}/v1"
    again = lab.run()
    assert (first.code, again.code) == (0, 0)
    assert again.out == first.out and "MMLU-Pro" in again.out
    assert lab.job().gen() == before and lab.job().sessions() == sessions


def test_commands_with_single_parts_fill_one_job(lab: Lab) -> None:
    """The second command adds its part and leaves the first one in the summary."""
    lab.card["parts"]["gpqa"] = {"list": "mine.jsonl"}
    lab.list_of(4)
    assert lab.run(parts="gpqa").code == 0
    assert lab.run(parts="mmlupro").code == 0
    whole = json.loads((lab.job().folder / "summary.json").read_text())
    assert set(whole["parts"]) == {"mmlupro", "gpqa"}
    text = (lab.job().folder / "summary.md").read_text()
    assert "MMLU-Pro" in text and "GPQA Diamond" in text


def test_repetition_starts_folders_of_its_own(lab: Lab) -> None:
    """Each repetition is whole; one that is not is gone on with before the next one starts."""
    lab.list_of(4)
    assert lab.run().code == 0
    assert lab.run("--repetition", "--limit", "2").code == 1
    assert lab.run("--repetition").code == 0
    assert len(lab.job("job-rep1").gen()) == 4
    assert lab.run("--repetition").code == 0
    assert len(lab.job("job-rep2").gen()) == 4
    assert not (lab.folder / "runs" / "job-rep3").exists()
    assert lab.attempts() == {str(i): 3 for i in range(4)}
    assert len(lab.job().gen()) == 4
    for name in ("job", "job-rep1", "job-rep2"):
        assert lab.job(name).summary()["status"] == "ok"


def test_repeats_are_in_every_key(lab: Lab) -> None:
    """Three answers a question: seeds differ by the repeat, and each is resumed for itself."""
    lab.card["parts"]["mmlupro"]["repeats"] = 3
    lab.list_of(5)
    assert lab.run("--limit", "2").code == 1
    assert lab.run().code == 0
    keys = Counter((line["id"], line["repeat"]) for line in lab.job().gen())
    assert keys == dict.fromkeys([(i, r) for i in range(5) for r in range(3)], 1)
    seeds = Counter((record["item"], record["body"]["seed"]) for record in lab.asked())
    assert seeds == dict.fromkeys([(str(i), 42 + r) for i in range(5) for r in range(3)], 1)
    summary = lab.job().summary()
    assert (summary["n"], summary["repeats"], summary["answered"]) == (15, 3, 15)
    rows = json_lines(lab.job().folder / "mmlupro.jsonl")
    assert [(row["repeat"], row["id"]) for row in rows] == [
        (repeat, id) for repeat in range(3) for id in range(5)
    ]


def test_ids_keep_their_type_and_are_compared_as_text(lab: Lab) -> None:
    """A list with numbers, texts and a text that looks like a number."""
    lab.list_of([7, "x-1", "0012", "ü"])
    assert lab.run("--limit", "2").code == 1
    assert lab.run().code == 0
    assert {json.dumps(line["id"]) for line in lab.job().gen()} == {
        "7",
        '"x-1"',
        '"0012"',
        json.dumps("ü"),
    }
    assert set(lab.attempts().values()) == {1}


# ------------------------------------------------------------------ dry run


def test_dry_run_sends_nothing_and_writes_the_very_requests_of_the_run(lab: Lab) -> None:
    """Each hash is that of the real run's line; the server is not even looked for."""
    url = lab.card["server"]["base_url"]
    lab.card["parts"]["think"] = {"list": "mine.jsonl", "repeats": 2}
    lab.list_of(5)
    lab.card["server"]["base_url"] = f"http://127.0.0.1:{GONE_PORT}/v1"
    dry = lab.run("--dry-run", parts="mmlupro,think")
    assert dry.code == 0 and "none sent" in dry.out
    assert lab.requests() == 0
    folder = lab.job().folder / "dry-run"
    assert not list(lab.job().folder.glob("*.json*")), "nothing outside dry-run"

    lab.card["server"]["base_url"] = url
    assert lab.run(parts="mmlupro,think").code == 0
    for part, count in (("mmlupro", 5), ("think", 10)):
        planned: dict[Any, Json] = {
            (line["id"], line["repeat"]): line
            for line in json_lines(folder / f"{part}.requests.jsonl")
        }
        done = {(line["id"], line["repeat"]): line for line in lab.job().gen(part)}
        assert len(planned) == count and planned.keys() == done.keys()
        for key, line in planned.items():
            assert line["request_sha256"] == done[key]["request_sha256"]
        written = json.loads((folder / f"{part}.contract.json").read_text())
        assert written["conditions"] == lab.job().contract(part)["conditions"]
        assert written["sessions"] == []
    sent = [r["body"] for r in lab.asked()]
    for body in sent:
        assert body.pop("cache_salt")
    bodies = [
        line["body"]
        for part in ("mmlupro", "think")
        for line in json_lines(folder / f"{part}.requests.jsonl")
    ]
    by_text = [
        sorted(json.dumps(body, sort_keys=True) for body in group) for group in (sent, bodies)
    ]
    assert by_text[0] == by_text[1]
