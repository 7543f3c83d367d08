"""Lists of the newest rows of a data set: chosen, locked, proved.

The published files are several gigabytes. They are gone through twice: once for ids and dates, and
once for the chosen rows, which are copied into the list cache one at a time.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from pydantic import ValidationError

from qualeval.errors import ListError
from qualeval.list_rows import files_of_hub, rows_of_user_file
from qualeval.pins import (
    Lock,
    PinnedRow,
    cache_folder,
    list_sha256,
    origin_path,
    pinned_row,
    pinned_rows,
    rows_path,
    text_of,
)
from qualeval.records import count_words, now
from qualeval.streamed_rows import SUFFIXES, Place, columns_of, files_below, read, scan
from qualeval.tasks.base import Newest, Row, Source, Task
from qualeval.whole_file import replacing, write_whole


@dataclass(frozen=True, slots=True)
class Chosen:
    """The newest rows of some files, newest first, where they are, and what they were chosen of."""

    ids: tuple[str, ...]
    places: tuple[Place, ...]
    files: tuple[Path, ...]
    rows: int
    pool: int
    left_out: Mapping[str, int]
    dates: tuple[str, str]


def lock_path(source: Source) -> Path:
    """Where the lock of a source's list is kept."""
    return cache_folder() / f"{source.name}.lock.json"


def list_id(task: Task, draw: Newest) -> str:
    """Id and version of a task's list; the lock says which rows it is on this machine."""
    return f"qualeval/{task.name}-{draw.size}/v1"


# Choosing


def choose(source: Source, draw: Newest, files: Sequence[Path]) -> Chosen:
    """The newest rows of all these files together, whatever the order of files and rows.

    A row that is there twice, unchanged, counts once. Raises ListError naming file and line for a
    row without id or date or with a date that cannot be read, for two rows of one id that differ,
    and for too few rows.
    """
    found: dict[str, list[tuple[Place, Row]]] = {}
    read_from: list[Path] = []
    for file in files:
        for place, row in scan(file, (source.id_field, draw.date_field)):
            if not read_from or read_from[-1] != file:
                read_from.append(file)
            thin = {name: row.get(name) for name in (source.id_field, draw.date_field)}
            _check(source, draw, thin, place)
            found.setdefault(str(thin[source.id_field]), []).append((place, thin))
    _refuse_changed_copies(source, found)
    pool = source.clean([copies[0][1] for copies in found.values()])
    if len(pool.rows) < draw.size:
        are = "is" if len(pool.rows) == 1 else "are"
        why = "" if found else f": {_why_none(source, draw, files)}"
        raise ListError(
            f"{_together(files)}: the list is the {draw.size} newest rows of {source.dataset}, and "
            f"{len(pool.rows)} {are} here to choose from{why}"
        )
    # Two sorts, the second one stable: dates downward, ids of one date upward.
    by_id = sorted(pool.rows, key=lambda row: str(row[source.id_field]))
    by_date = sorted(by_id, key=lambda row: _moment(row[draw.date_field]), reverse=True)
    newest = by_date[: draw.size]
    ids = tuple(str(row[source.id_field]) for row in newest)
    return Chosen(
        ids=ids,
        places=tuple(found[id][0][0] for id in ids),
        files=tuple(read_from),
        rows=len(found),
        pool=len(pool.rows),
        left_out=pool.left_out,
        dates=(str(newest[-1][draw.date_field]), str(newest[0][draw.date_field])),
    )


def _why_none(source: Source, draw: Newest, files: Sequence[Path]) -> str:
    """Why files hold no row at all to choose from: each is known by its first row."""
    there = {name for file in files for name in columns_of(file)}
    if not there:
        return "no row is there"
    wanted = dict.fromkeys((source.id_field, draw.date_field, *draw.required))
    if lacking := [f"'{name}'" for name in wanted if name not in there]:
        return f"no first row has {', '.join(lacking)}"
    return f"no first row has both '{source.id_field}' and '{draw.date_field}'"


def _check(source: Source, draw: Newest, row: Row, place: Place) -> None:
    id = row[source.id_field]
    if not isinstance(id, int | str) or isinstance(id, bool):
        raise ListError(f"{place}: field '{source.id_field}' must be a text or a whole number")
    try:
        _moment(row[draw.date_field])
    except (TypeError, ValueError):
        raise ListError(
            f"{place}: field '{draw.date_field}' must be an ISO date without time zone, such as "
            "2025-04-05T00:00:00"
        ) from None


def _moment(text: str) -> datetime:
    """The moment that a date stands for. Raises ValueError, or TypeError for what is no text."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        raise ValueError("has a time zone")
    return moment


def _refuse_changed_copies(
    source: Source, found: Mapping[str, Sequence[tuple[Place, Row]]]
) -> None:
    """Raise ListError when rows of one id differ; only those that occur twice are read again."""
    double = [place for copies in found.values() if len(copies) > 1 for place, _ in copies]
    seen: dict[str, tuple[Place, str]] = {}
    for place, row in read(double, source.columns):
        id, sha256 = str(row.get(source.id_field)), _pinned(source, row, place).sha256
        first, known = seen.setdefault(id, (place, sha256))
        if known != sha256:
            raise ListError(f"{place}: {source.id_field} {id} is not what it is at {first}")


def _pinned(source: Source, row: Row, place: Place) -> PinnedRow:
    try:
        return pinned_row(source, row)
    except KeyError:  # it had one a moment ago
        raise ListError(f"{place}: the file changed while it was read; try again") from None
    except TypeError as error:  # a value, such as bytes in Parquet, that no published row has
        raise ListError(f"{place}: {error}") from None


def _together(files: Sequence[Path]) -> str:
    return str(files[0]) if len(files) == 1 else f"{files[0].parent} ({len(files)} files)"


# Taking rows into the cache


def fetch_newest(task: Task, draw: Newest) -> Path:
    """Download the published files and take the newest rows; the path written. Raises ListError."""
    files, revision = files_of_hub(task.source, draw.files, SUFFIXES)
    return _take(task, draw, files, {"from": "hub", "revision": revision}, revision)


def import_newest(task: Task, draw: Newest, path: Path) -> Path:
    """Take the newest rows of a file, or of all files below a folder; the path written.

    Raises ListError.
    """
    files = files_below(path)
    if not files:
        raise ListError(f"{path}: holds no file of {', '.join(SUFFIXES)}")
    return _take(task, draw, files, {"from": "file", "file": path.name}, None)


def _take(
    task: Task,
    draw: Newest,
    files: Sequence[Path],
    origin: Mapping[str, str | None],
    revision: str | None,
) -> Path:
    source = task.source
    known = lock_of(task, draw) if lock_path(source).exists() else None
    chosen = choose(source, draw, files)
    target = rows_path(source)
    facts = {"dataset": source.dataset, "taken": now(), **origin}
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as out:
            lock = _copied(task, draw, chosen, out, revision)
            if known is not None:
                _refuse_other(known, lock, lock_path(source))
            else:
                write_whole(lock_path(source), text_of(lock).encode())
            write_whole(origin_path(source), json.dumps(facts).encode())
    except OSError as error:
        raise ListError(f"{target}: cannot be written: {error.strerror}") from None
    return target


def _copied(task: Task, draw: Newest, chosen: Chosen, out: BinaryIO, revision: str | None) -> Lock:
    """Write the chosen rows to a file, each looked at in full; the lock that they make."""
    source = task.source
    rows: dict[str, PinnedRow] = {}
    platforms: list[str] = []
    tests = 0
    for place, row in read(chosen.places, source.columns):
        lacking = [name for name in draw.required if row.get(name) is None]
        if lacking and lacking[0] in row:
            raise ListError(f"{place}: column '{lacking[0]}' is null")
        if lacking:
            raise ListError(f"{place}: lacks column '{lacking[0]}'")
        pinned = _pinned(source, row, place)
        try:
            tests += draw.tests(task.official_item(row))
        except (ValueError, RecursionError) as error:
            raise ListError(f"{place}: {error}") from None
        rows[str(pinned.id)] = pinned
        platforms.append(str(row.get("platform")))
        kept = {name: row.get(name) for name in source.columns}
        for text in json.JSONEncoder().iterencode(kept):  # a row in pieces, never twice
            out.write(text.encode())
        out.write(b"\n")
    if rows.keys() != set(chosen.ids):
        raise ListError(f"{chosen.places[0].file}: changed while it was read; try again")
    in_order = tuple(rows[id] for id in chosen.ids)
    return Lock(
        list=list_id(task, draw),
        dataset=source.dataset,
        revision=revision,
        release=_release(draw, chosen),
        dates=chosen.dates,
        pool=chosen.pool,
        left_out=dict(chosen.left_out),
        platforms=count_words(platforms),
        tests=tests,
        sha256=list_sha256(row.sha256 for row in in_order),
        rows=in_order,
    )


def _release(draw: Newest, chosen: Chosen) -> str:
    """What the newest rows are of: `release_v6 (1,055 problems)`. A copy whose files have other
    names is the same release.
    """
    release = draw.releases.get(chosen.rows)
    count = f"{chosen.rows:,} problems"
    return f"{release} ({count})" if release else count


# The lock


def lock_of(task: Task, draw: Newest) -> Lock:
    """The lock of a task's list. Raises ListError when there is none, or it is damaged."""
    path = lock_path(task.source)
    anew = f"remove it, and take the list anew: {_ways(task)}"
    try:
        lock = Lock.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise ListError(f"{path}: there is no such file; {_ways(task)}") from None
    except OSError as error:
        raise ListError(f"{path}: cannot be read: {error.strerror}") from None
    except ValidationError:
        raise ListError(f"{path}: is damaged; {anew}") from None
    if lock.list != list_id(task, draw):
        raise ListError(f"{path}: is of list '{lock.list}', not {list_id(task, draw)}; {anew}")
    if lock.sha256 != list_sha256(row.sha256 for row in lock.rows) or not lock.rows:
        raise ListError(f"{path}: is damaged: its hashes do not make its sha256; {anew}")
    return lock


def _ways(task: Task) -> str:
    name = task.source.name
    return f"`qualeval lists fetch {name}`, or `qualeval lists import {name} FILE_OR_FOLDER`"


def _refuse_other(known: Lock, new: Lock, path: Path) -> None:
    """Raise ListError unless the new rows are the locked ones."""
    if [row.sha256 for row in new.rows] == [row.sha256 for row in known.rows]:
        return
    pairs = zip(known.rows, new.rows, strict=False)
    old, other = next(((a, b) for a, b in pairs if a != b), (known.rows[-1], new.rows[-1]))
    differs = (
        f"{old.id} has another text or other tests"
        if old.id == other.id
        else f"{other.id} stands where {old.id} is locked"
    )
    raise ListError(
        f"list '{known.list}' is locked to {known.release}, {_span(known)}; the newest rows here, "
        f"{new.release}, {_span(new)}, are others: {differs}. Results on them would not be "
        f"comparable. Nothing was changed. To give up the locked list, remove {path} and run this "
        "again"
    )


def _span(lock: Lock) -> str:
    first, last = lock.dates
    return f"dates {first[:10]} to {last[:10]}"


def said_of_lock(task: Task, draw: Newest) -> str:
    """What a list is locked to, in words."""
    lock = lock_of(task, draw)
    chosen = f"the {len(lock.rows)} newest rows of {lock.release}, {_span(lock)}"
    return f"{chosen}, locked in {lock_path(task.source).name}"


def locked_rows(task: Task, draw: Newest) -> tuple[Lock, list[Row]]:
    """The lock of a task's list and its rows out of the cache, every one proved.

    Raises ListError that says how to get the list; nothing is downloaded here.
    """
    path = rows_path(task.source)
    if not path.exists():
        raise ListError(
            f"list '{list_id(task, draw)}' is not on this machine ({path}); {_ways(task)}; "
            "to try things out without it: `--lists sample`"
        )
    lock = lock_of(task, draw)
    try:
        rows = (row for _, row in rows_of_user_file(path))
        return lock, pinned_rows(task.source, lock, rows, str(path))
    except ListError as error:
        raise ListError(f"{error}\ntake it anew: {_ways(task)}") from None


# Showing


def describe_newest(task: Task, draw: Newest) -> list[str]:
    """What a task's list is, and whether it is here, a line each; no text."""
    path = rows_path(task.source)
    hint = f"qualeval lists fetch {task.name}, or: qualeval lists import {task.name} FILE_OR_FOLDER"
    drawn = f"drawn     the {draw.size} newest rows of {task.source.dataset} by {draw.date_field}"
    if not lock_path(task.source).exists() and not path.exists():
        return [
            f"list      {list_id(task, draw)}, {draw.size} items; locked once it is here",
            drawn,
            f"here      no ({path}); {hint}",
        ]
    lock = lock_of(task, draw)
    lines = [
        f"list      {lock.list}, {len(lock.rows)} items, sha256 {lock.sha256}",
        f"{drawn}, then by id, out of {lock.pool:,}",
        f"release   {lock.release}, revision {lock.revision or 'not known'}",
        f"dates     {lock.dates[0]} to {lock.dates[1]}",
        "left out  " + (", ".join(f"{n} {why}" for why, n in lock.left_out.items()) or "none"),
        "platforms " + _counted(lock.platforms),
        "strata    " + _counted(count_words([row.stratum for row in lock.rows])),
        f"tests     {lock.tests:,}",
        f"lock      {lock_path(task.source)}",
    ]
    if not path.exists():
        return [*lines, f"here      no ({path}); {hint}"]
    locked_rows(task, draw)
    return [*lines, f"here      yes, every row proved: {path}"]


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())
