"""The files of a run: append, flush, repair, resume. The only module that writes run files.

An answer is on disk before the next request of its slot is sent: one write call a line, so that a
killed process loses at most what was in flight. A line that was torn by a crash or a full disk is
cut off again and reported. Whole files are written beside and renamed, so nobody sees half of one.
"""

import errno
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Literal, TypeVar

from pydantic import ValidationError

from qualeval.errors import DiskError, JobInUseError, RunFolderError
from qualeval.records import (
    Contract,
    FailedRequest,
    RawReply,
    Record,
    Summary,
    key_of,
    now,
    to_json,
)
from qualeval.whole_file import UNFINISHED, replacing

SYNC_EVERY = 1.0
"""Seconds between two fsync calls on a growing file; flushing to the system happens every line."""

Kind = Literal["gen", "errors"]
SomeRecord = TypeVar("SomeRecord", bound=Record)


class RunFolder:
    """One run's folder, held by one process at a time. Use as a context manager.

    Raises JobInUseError when another process holds it, DiskError when it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None
        self._growing: dict[Path, _GrowingFile] = {}

    def __enter__(self) -> "RunFolder":
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _disk_error(self.path, "cannot be made", error) from None
        try:
            self._lock = os.open(self.path / ".lock", os.O_CREAT | os.O_RDWR, 0o644)
        except OSError as error:
            raise _disk_error(self.path, "cannot be written to", error) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            if not isinstance(error, BlockingIOError):  # some network drives have no locks
                raise DiskError(f"{self.path}: cannot be locked: {error.strerror}") from None
            raise JobInUseError(
                f"{self.path}: another qualeval is writing to this job; wait for it, "
                "or give this run a name of its own (--job NAME)"
            ) from None
        for unfinished in self.path.glob(f".*{UNFINISHED}"):  # of a run that was killed
            unfinished.unlink(missing_ok=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for file in self._growing.values():
            file.close()
        self._growing.clear()
        if self._lock is not None:
            os.close(self._lock)

    def file(self, name: str) -> Path:
        """The path of a file of this run."""
        return self.path / name

    def append(self, part: str, kind: Kind, record: Record) -> None:
        """Add one line to `<part>.<kind>.jsonl`. Raises DiskError; the line is then not there."""
        path = self.file(f"{part}.{kind}.jsonl")
        if path not in self._growing:
            self._growing[path] = _GrowingFile(path)
        self._growing[path].append(to_json(record) + "\n")

    def log(self, message: str, part: str = "-") -> None:
        """Add an event to run.log. The caller has masked what must not be there."""
        path = self.file("run.log")
        if path not in self._growing:
            self._growing[path] = _GrowingFile(path)
        one_line = " ".join(message.encode("ascii", "backslashreplace").decode().split())
        self._growing[path].append(f"{now()} {part} {one_line}\n")

    def write(self, name: str, text: str) -> None:
        """Write a whole file, complete or not at all. Raises DiskError."""
        with self.replace(name) as line:
            line(text)

    @contextmanager
    def replace(self, name: str) -> Iterator[Callable[[str], object]]:
        """A function that writes lines to a file which takes its place once all are written."""
        path = self.file(name)
        try:
            with replacing(path) as file:
                yield lambda text: file.write(text.removesuffix("\n").encode() + b"\n")
        except OSError as error:
            raise _disk_error(path, "cannot be written", error) from None

    def repair(self, part: str) -> list[str]:
        """Cut a torn last line off the part's growing files; what was done, one line each."""
        done = []
        for kind in ("gen", "errors"):
            path = self.file(f"{part}.{kind}.jsonl")
            torn = _cut_torn_line(path)
            if torn:
                size = f"{torn} byte" if torn == 1 else f"{torn} bytes"
                done.append(f"{path.name}: cut a torn last line of {size}, asked again")
        return done


def _disk_error(path: Path, what: str, error: OSError) -> DiskError:
    """What could not be done with a file, and what next where the disk is full."""
    said = f"{path}: {what}: {error.strerror}"
    if error.errno == errno.ENOSPC:
        said += "; everything before is kept: free some space and run the same command again"
    return DiskError(said)


class _GrowingFile:
    """A file that only grows, one unbuffered write a line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            self._size = os.fstat(self._file).st_size
        except OSError as error:
            raise _disk_error(path, "cannot be written", error) from None
        self._synced = monotonic()

    def append(self, line: str) -> None:
        data = line.encode("utf-8")
        try:
            written = os.write(self._file, data)
            if written < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if monotonic() - self._synced > SYNC_EVERY:
                os.fsync(self._file)
                self._synced = monotonic()
        except OSError as error:
            with suppress(OSError):  # a line left in two is cut off by the next start
                os.ftruncate(self._file, self._size)
            raise _disk_error(self._path, "cannot be written", error) from None
        self._size += len(data)

    def close(self) -> None:
        with suppress(OSError):  # nothing is lost that a crash of the machine would not lose too
            os.fsync(self._file)
        os.close(self._file)


def _cut_torn_line(path: Path) -> int:
    """Cut what follows the last line feed; the number of bytes that went."""
    try:
        with path.open("r+b") as file:
            size = end = file.seek(0, os.SEEK_END)
            while end > 0:
                start = max(0, end - 65536)
                file.seek(start)
                found = file.read(end - start).rfind(b"\n")
                end = start + found + 1 if found >= 0 else start
                if found >= 0:
                    break
            file.truncate(end)
            return size - end
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise DiskError(f"{path}: cannot be repaired: {error.strerror}") from None


# Reading


def read_lines(path: Path, record: type[SomeRecord]) -> Iterator[tuple[int, SomeRecord]]:
    """(byte offset, record) of each whole line of a JSON-lines file; nothing when it is missing.

    Lines end at line feeds only: U+2028 and its like may stand in a text. A last line without one
    is still being written and is left out. Raises RunFolderError naming file and line.
    """
    offset = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    return
                yield offset, _parse(line, record, f"{path}:{number}")
                offset += len(line)
    except FileNotFoundError:
        return
    except OSError as error:
        raise RunFolderError(f"{path}: cannot be read: {error.strerror}") from None


def _parse(line: bytes, record: type[SomeRecord], where: str) -> SomeRecord:
    try:
        return record.model_validate(json.loads(line))
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        field = f"field '{'.'.join(map(str, fault['loc']))}': " if fault["loc"] else ""
        raise RunFolderError(f"{where}: {field}{fault['msg']}") from None
    except (ValueError, RecursionError):
        raise RunFolderError(f"{where}: is not JSON") from None


class RawReplies:
    """The raw replies of a part, found by key without being held in memory.

    When a key occurs twice the first line counts: an answer is never replaced by a later one.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offsets: dict[tuple[str, int], int] = {}
        for offset, raw in read_lines(path, RawReply):
            self._offsets.setdefault(key_of(raw.id, raw.repeat), offset)

    def __contains__(self, key: tuple[str, int]) -> bool:
        return key in self._offsets

    def __len__(self) -> int:
        return len(self._offsets)

    def get(self, keys: Iterator[tuple[str, int]]) -> Iterator[RawReply]:
        """The replies to those of `keys` that have one, in that order."""
        if not self._offsets:
            return
        try:
            with self._path.open("rb") as file:
                for key in keys:
                    if key in self._offsets:
                        file.seek(self._offsets[key])
                        yield _parse(file.readline(), RawReply, f"{self._path}: {key[0]}")
        except OSError as error:
            raise RunFolderError(f"{self._path}: cannot be read: {error.strerror}") from None


def read_failures(path: Path) -> dict[tuple[str, int], FailedRequest]:
    """The last failure of each key in `<part>.errors.jsonl`."""
    return {key_of(f.id, f.repeat): f for _, f in read_lines(path, FailedRequest)}


def still_open(folder: Path, part: str, replies: RawReplies) -> list[FailedRequest]:
    """The requests of a part that were given up and not answered since, the last failure of each.
    Raises RunFolderError.
    """
    failures = read_failures(folder / f"{part}.errors.jsonl")
    return [failed for key, failed in failures.items() if key not in replies]


def read_contract(path: Path) -> Contract | None:
    """The contract at `path`, or None when there is none. Raises RunFolderError."""
    return _read_whole(path, Contract)


def read_summary(folder: Path, part: str) -> Summary | None:
    """The summary of a part, or None when there is none. Raises RunFolderError."""
    return _read_whole(folder / f"{part}.summary.json", Summary)


def _read_whole(path: Path, record: type[SomeRecord]) -> SomeRecord | None:
    try:
        return _parse(path.read_bytes(), record, str(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunFolderError(f"{path}: cannot be read: {error.strerror}") from None
