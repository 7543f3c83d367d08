"""The files of a run: nothing is lost, nothing is half, one writer."""

import errno
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import LETTERS, contract, failure

from qualeval import runfolder
from qualeval.errors import DiskError, JobInUseError, RunFolderError
from qualeval.records import Completion, RawReply, Request, to_json
from qualeval.runfolder import (
    RawReplies,
    RunFolder,
    read_contract,
    read_failures,
    read_lines,
)


def reply(id: int | str, text: str = "B", repeat: int = 0) -> RawReply:
    request = Request(id=id, repeat=repeat, max_tokens=48, body={})
    return RawReply.of(request, Completion(text=text, finish_reason="stop"))


@pytest.fixture
def files(tmp_path: Path) -> Iterator[RunFolder]:
    with RunFolder(tmp_path / "runs" / "job") as opened:
        yield opened


KEPT = "; everything before is kept: free some space and run the same command again"


def full_disk(*_: Any) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


# One writer


def test_second_run_on_one_job_is_refused(files: RunFolder) -> None:
    """DESIGN 5: two runs on one folder; the message says what to do."""
    with pytest.raises(JobInUseError, match="another qualeval is writing to this job") as caught:
        RunFolder(files.path).__enter__()
    assert 2 == caught.value.exit_code
    assert "--job NAME" in str(caught.value)


def test_drive_without_locks_is_told_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not as another qualeval, which would be looked for in vain."""

    def no_locks(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.raises(DiskError, match="cannot be locked: No locks available"):
        RunFolder(tmp_path / "job").__enter__()


def test_half_written_file_of_a_killed_run_is_taken_away(tmp_path: Path) -> None:
    with RunFolder(tmp_path) as files:
        half = files.replace("mmlupro.jsonl")
        half.__enter__()("{}")
        left = [path for path in tmp_path.iterdir() if path.name.endswith(".new")]
        assert 1 == len(left)
    with RunFolder(tmp_path):
        assert not left[0].exists()


def test_second_process_on_one_job_is_refused(files: RunFolder) -> None:
    """The lock is one between processes."""
    code = "import sys, pathlib; from qualeval.runfolder import RunFolder\n"
    code += "RunFolder(pathlib.Path(sys.argv[1])).__enter__()"
    ended = subprocess.run(
        [sys.executable, "-c", code, str(files.path)], capture_output=True, text=True, check=False
    )
    assert "JobInUseError" in ended.stderr


def test_folder_is_free_again_when_the_run_has_ended(tmp_path: Path) -> None:
    """Also when it ended in an error; opening twice in a row works."""
    folder = RunFolder(tmp_path)
    with pytest.raises(ZeroDivisionError), folder:
        _ = 1 / 0
    with folder, pytest.raises(JobInUseError):
        RunFolder(tmp_path).__enter__()


def test_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    """A file stands where the folder should be."""
    (tmp_path / "runs").write_text("")
    with pytest.raises(DiskError, match=r"runs/job: cannot be made: Not a directory"):
        RunFolder(tmp_path / "runs" / "job").__enter__()


def test_folder_that_is_there_and_cannot_be_written_to_is_told_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing had to be made."""

    def read_only(*_: Any) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "open", read_only)
    with pytest.raises(DiskError) as caught:
        RunFolder(tmp_path).__enter__()
    assert f"{tmp_path}: cannot be written to: Read-only file system" == str(caught.value)


# Growing files


def test_answer_is_on_disk_as_soon_as_it_is_appended(files: RunFolder) -> None:
    """A killed process loses at most what was in flight."""
    files.append("gpqa", "gen", reply("q1"))
    assert to_json(reply("q1")) + "\n" == files.file("gpqa.gen.jsonl").read_text()


def test_lines_are_added_behind_those_of_an_earlier_run(tmp_path: Path) -> None:
    """Growing files only grow."""
    for id in ("q1", "q2"):
        with RunFolder(tmp_path) as opened:
            opened.append("gpqa", "gen", reply(id))
    lines = read_lines(tmp_path / "gpqa.gen.jsonl", RawReply)
    assert ["q1", "q2"] == [raw.id for _, raw in lines]


def test_full_disk_is_a_clear_error_and_leaves_no_half_line(
    files: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DESIGN 5: what was written is kept; the line that failed is not there."""
    files.append("gpqa", "gen", reply("q1"))
    real_write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, data: real_write(file, data[:20]))
        with pytest.raises(DiskError, match=f"No space left on device{KEPT}$"):
            files.append("gpqa", "gen", reply("q2"))
    files.append("gpqa", "gen", reply("q3"))
    lines = read_lines(files.file("gpqa.gen.jsonl"), RawReply)
    assert ["q1", "q3"] == [raw.id for _, raw in lines]


def test_full_disk_at_sync_takes_the_line_back(
    files: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some file systems tell only at fsync."""
    files.append("gpqa", "gen", reply("q1"))
    with monkeypatch.context() as patch:
        patch.setattr(runfolder, "SYNC_EVERY", -1.0)
        patch.setattr(os, "fsync", full_disk)
        with pytest.raises(DiskError):
            files.append("gpqa", "gen", reply("q2"))
    assert ["q1"] == [r.id for _, r in read_lines(files.file("gpqa.gen.jsonl"), RawReply)]


def test_line_that_cannot_be_taken_back_is_still_a_disk_error(
    files: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The torn line is repaired by the next start."""
    files.append("gpqa", "gen", reply("q1"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full_disk)
        patch.setattr(os, "ftruncate", full_disk)
        with pytest.raises(DiskError):
            files.append("gpqa", "gen", reply("q2"))


def test_growing_file_is_synced_from_time_to_time(
    files: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for every line: that would cost the server its slots."""
    moments = iter([0.0, 0.5, 1.5, 1.5, 2.0])
    synced: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(runfolder, "monotonic", lambda: next(moments))
        patch.setattr(os, "fsync", synced.append)
        counts = []
        for id in range(3):
            files.append("gpqa", "gen", reply(id))
            counts.append(len(synced))
    assert [0, 1, 1] == counts


def test_file_that_cannot_be_opened_is_a_clear_error(files: RunFolder) -> None:
    """A folder stands where the file should be."""
    files.file("gpqa.gen.jsonl").mkdir()
    with pytest.raises(DiskError, match=r"gpqa\.gen\.jsonl: cannot be written: Is a directory"):
        files.append("gpqa", "gen", reply("q1"))


def test_log_line_is_one_line_with_time_and_part(files: RunFolder) -> None:
    """Whatever a server said: no line end, no character that cannot be written."""
    files.log("two\nlines\u2028 and \ud835 é", "gpqa")
    files.log("no part")
    first, second = files.file("run.log").read_bytes().decode("ascii").rstrip("\n").split("\n")
    assert "Z gpqa two lines\\u2028 and \\ud835 \\xe9" in first
    assert second.endswith("Z - no part")


# Whole files


def test_whole_file_ends_with_a_line_feed_and_leaves_nothing_beside(files: RunFolder) -> None:
    """Written beside and renamed."""
    files.write("card.json", "{}")
    assert "{}\n" == files.file("card.json").read_text()
    assert {".lock", "card.json"} == {path.name for path in files.path.iterdir()}


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), ValueError()])
def test_file_that_fails_in_the_middle_leaves_the_old_one(
    files: RunFolder, error: Exception
) -> None:
    """Nobody sees half of a file."""
    files.write("gpqa.jsonl", "old")
    with pytest.raises((DiskError, ValueError)), files.replace("gpqa.jsonl") as line:
        line("new")
        raise error
    assert "old\n" == files.file("gpqa.jsonl").read_text()
    assert not files.file("gpqa.jsonl.new").exists()


def test_full_disk_while_a_whole_file_is_written(
    files: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the file."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_disk)
        with pytest.raises(DiskError, match=rf"card\.json: cannot be written: No space .*{KEPT}$"):
            files.write("card.json", "{}")


def test_only_a_full_disk_is_told_to_be_freed(
    files: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another fault of the disk has another cure."""

    def broken_disk(*_: Any) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", broken_disk)
        with pytest.raises(DiskError, match=r"cannot be written: Input/output error$"):
            files.append("gpqa", "gen", reply("q1"))


# Torn lines


@given(whole=st.lists(st.text(max_size=8), max_size=3), cut=st.integers(1, 60))
def test_torn_last_line_is_cut_off_and_all_before_it_kept(
    tmp_path_factory: pytest.TempPathFactory, whole: list[str], cut: int
) -> None:
    """res: a kill in the middle of a write, at any byte."""
    path = tmp_path_factory.mktemp("run") / "gpqa.gen.jsonl"
    kept = "".join(to_json(reply(str(n), text)) + "\n" for n, text in enumerate(whole)).encode()
    torn = to_json(reply("torn")).encode()[:cut]
    path.write_bytes(kept + torn)
    with RunFolder(path.parent) as opened:
        size = "1 byte" if len(torn) == 1 else f"{len(torn)} bytes"
        expected = f"gpqa.gen.jsonl: cut a torn last line of {size}, asked again"
        assert [expected] == opened.repair("gpqa")
        assert [] == opened.repair("gpqa")
    assert kept == path.read_bytes()


def test_torn_line_longer_than_a_block_is_found(files: RunFolder) -> None:
    """The last line feed is looked for backwards, block by block."""
    path = files.file("gpqa.errors.jsonl")
    path.write_bytes(b"{}\n" + b"x" * 200_000)
    assert ["gpqa.errors.jsonl: cut a torn last line of 200000 bytes, asked again"] == (
        files.repair("gpqa")
    )
    assert b"{}\n" == path.read_bytes()


def test_torn_file_that_cannot_be_opened_is_a_clear_error(files: RunFolder) -> None:
    """Not a traceback."""
    files.file("gpqa.gen.jsonl").mkdir()
    with pytest.raises(DiskError, match="cannot be repaired: Is a directory"):
        files.repair("gpqa")


# Reading


def test_line_still_being_written_is_left_out(tmp_path: Path) -> None:
    """A reader beside a running job."""
    path = tmp_path / "x.gen.jsonl"
    path.write_bytes((to_json(reply("q1")) + "\n" + to_json(reply("q2"))).encode())
    assert ["q1"] == [raw.id for _, raw in read_lines(path, RawReply)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "2: is not JSON"),
        (b"\xff", "2: is not JSON"),
        (b"[" * 100_000, "2: is not JSON"),
        (b"[]", "2: Input should be a valid dictionary or instance of RawReply"),
        (b"{}", "2: field 'id': Field required"),
        (
            to_json(reply("q")).replace('"usage":{', '"usage":{"x":1,').encode(),
            "2: field 'usage.x': Extra inputs are not permitted",
        ),
    ],
)
def test_damaged_line_is_named(tmp_path: Path, line: bytes, message: str) -> None:
    """File, line, field: nothing of a run is skipped in silence."""
    path = tmp_path / "x.gen.jsonl"
    path.write_bytes(to_json(reply("q1")).encode() + b"\n" + line + b"\n")
    with pytest.raises(RunFolderError) as caught:
        list(read_lines(path, RawReply))
    assert f"{path}:{message}" == str(caught.value)


@pytest.mark.parametrize("read", [read_contract, read_failures, RawReplies])
def test_file_that_cannot_be_read_is_a_clear_error(tmp_path: Path, read: Any) -> None:
    """A folder stands where the file should be."""
    with pytest.raises(RunFolderError, match="cannot be read: Is a directory"):
        read(tmp_path)


def test_missing_files_hold_nothing(tmp_path: Path) -> None:
    """A part that was never asked."""
    path = tmp_path / "none"
    assert ([], {}, None, 0) == (
        list(read_lines(path, RawReply)),
        read_failures(path),
        read_contract(path),
        len(RawReplies(path)),
    )
    assert [] == list(RawReplies(path).get(iter([("q", 0)])))


def test_replies_are_found_by_key_in_the_order_asked_for(files: RunFolder) -> None:
    """Files are in the order of the answers, results in that of the list."""
    for raw in (reply("b"), reply("a", repeat=1), reply(7), reply("a")):
        files.append("gpqa", "gen", raw)
    replies = RawReplies(files.file("gpqa.gen.jsonl"))
    wanted = [("7", 0), ("a", 0), ("missing", 0), ("a", 1)]
    assert [(7, 0), ("a", 0), ("a", 1)] == [(r.id, r.repeat) for r in replies.get(iter(wanted))]
    assert (4, True, False) == (len(replies), ("b", 0) in replies, ("b", 1) in replies)


def test_first_of_two_answers_to_one_item_counts(files: RunFolder) -> None:
    """An answer is never replaced by a later one: never best of."""
    files.append("gpqa", "gen", reply("a", "first"))
    files.append("gpqa", "gen", reply("a", "second"))
    replies = RawReplies(files.file("gpqa.gen.jsonl"))
    assert ["first"] == [raw.text for raw in replies.get(iter([("a", 0)]))]


def test_line_separators_in_a_text_do_not_end_a_line(tmp_path: Path) -> None:
    """log-02: also where another program wrote them unescaped."""
    path = tmp_path / "x.gen.jsonl"
    line = json.dumps(json.loads(to_json(reply("q", "B\u2028\u0085\u2029C"))), ensure_ascii=False)
    path.write_bytes(line.encode() + b"\n")
    assert ["B\u2028\u0085\u2029C"] == [raw.text for _, raw in read_lines(path, RawReply)]


def test_last_failure_of_an_item_is_the_one_told(files: RunFolder) -> None:
    """An item may fail in several sessions."""
    files.append("gpqa", "errors", failure("a", kind="timeout"))
    files.append("gpqa", "errors", failure("a", kind="http_500"))
    found = read_failures(files.file("gpqa.errors.jsonl"))
    assert {("a", 0): "http_500"} == {key: f.kind for key, f in found.items()}


def test_contract_reads_back_equal(files: RunFolder) -> None:
    """As written before the first request."""
    made = contract(LETTERS, 4)
    files.write("mmlupro.contract.json", made.model_dump_json(indent=2))
    assert made == read_contract(files.file("mmlupro.contract.json"))
