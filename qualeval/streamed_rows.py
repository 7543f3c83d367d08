"""Rows of files that are too large to be held: read from disk one at a time, and found again.

JSON lines are read line by line, Parquet in batches of a few rows. A row is found again by its
place. At most one row is in memory, whatever the size of the file.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from qualeval.errors import ListError
from qualeval.list_rows import row_of_line
from qualeval.tasks.base import Row

SUFFIXES = (".jsonl", ".parquet")

MAX_LINE_BYTES = 256 * 1024**2
"""A longer line is refused: it would have to be held several times over."""

BUFFER_BYTES = 4 * 1024**2
"""Parquet pages are read through a buffer of this size instead of whole column chunks."""

BATCH_ROWS = 256
"""Rows of a few short columns that are read at once; whole rows are read one at a time."""


PACKED = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"\x28\xb5\x2f\xfd": "zstd"}
"""What a file begins with that was packed as a whole."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a row is. `number` counts lines (JSON lines) or rows (Parquet) from 1, `offset` is the
    byte at which the line starts, or 0.
    """

    file: Path
    number: int
    offset: int

    def __str__(self) -> str:
        return f"{self.file}:{self.number}"


def files_below(path: Path) -> list[Path]:
    """The files below a folder that may hold rows, or the file itself. Raises ListError."""
    if path.is_dir():
        named = (p for p in path.rglob("*") if p.suffix.lower() in SUFFIXES)
        return sorted(p for p in named if p.is_file() and not p.name.startswith("."))
    if not path.is_file():
        raise ListError(f"{path}: there is no such file or folder")
    if path.suffix.lower() not in SUFFIXES:
        raise ListError(f"{path}: is none of {', '.join(SUFFIXES)}")
    return [path]


def scan(file: Path, columns: Sequence[str]) -> Iterator[tuple[Place, Row]]:
    """(place, row) of every row of a file, in its order, with at least those of `columns` that it
    has. Nothing of a file that has not all of them in its first row: it is another table.

    Raises ListError naming file and line.
    """
    if file.suffix.lower() == ".parquet":
        yield from _scan_parquet(file, columns)
        return
    known = False
    for place, row in _lines(file):
        known = known or all(name in row for name in columns)
        if not known:
            return
        yield place, row


def columns_of(file: Path) -> frozenset[str]:
    """The columns of a file: those of its first row, none where it has no row. Raises ListError."""
    if file.suffix.lower() == ".parquet":
        import pyarrow.parquet  # 0.2 s, and only an import needs it

        try:
            return frozenset(pyarrow.parquet.read_schema(file).names)
        except (OSError, pyarrow.ArrowException) as error:
            raise ListError(f"{file}: cannot be read as Parquet: {error}") from None
    return frozenset(next((row for _, row in _lines(file)), {}))


def read(places: Iterable[Place], columns: Sequence[str]) -> Iterator[tuple[Place, Row]]:
    """(place, row) of the rows at these places, file by file, with those `columns` that they have.

    Raises ListError when a row is not where it was.
    """
    by_file: dict[Path, list[Place]] = {}
    for place in sorted(places):
        by_file.setdefault(place.file, []).append(place)
    for file, wanted in by_file.items():
        if file.suffix.lower() == ".parquet":
            yield from _read_parquet(file, wanted, columns)
        else:
            yield from _read_lines(file, wanted, columns)


# JSON lines


def _lines(file: Path) -> Iterator[tuple[Place, Row]]:
    try:
        with file.open("rb") as opened:
            number, offset = 0, 0
            while True:
                line = opened.readline(MAX_LINE_BYTES + 1)
                if not line:
                    return
                number += 1
                place = Place(file, number, offset)
                offset += len(line)
                row = _row(line, place)
                del line  # or it would be held beside what was made of it
                if row is not None:
                    yield place, row
    except OSError as error:
        raise ListError(f"{file}: cannot be read: {error.strerror}") from None


def _row(line: bytes, place: Place) -> Row | None:
    if len(line) > MAX_LINE_BYTES:
        raise ListError(f"{place}: is longer than {MAX_LINE_BYTES // 1024**2} MiB")
    try:
        return row_of_line(line, place.number, str(place.file))
    except ListError as error:
        raise ListError(f"{error}{_what_next(line, place)}") from None


def _what_next(line: bytes, place: Place) -> str:
    """What may have become of a file with this line, which cannot be read, and what to do."""
    packed = next((name for start, name in PACKED.items() if line.startswith(start)), None)
    if packed and place.number == 1:
        return f"; the file is packed with {packed}: unpack it first"
    if not line.endswith(b"\n"):
        return "; the file ends inside this line: an incomplete download? take it anew"
    return ""


def _read_lines(
    file: Path, places: Sequence[Place], columns: Sequence[str]
) -> Iterator[tuple[Place, Row]]:
    try:
        with file.open("rb") as opened:
            for place in places:
                opened.seek(place.offset)
                row = _row(opened.readline(MAX_LINE_BYTES + 1), place)
                if row is None:
                    raise _changed(place)
                yield place, {name: row[name] for name in columns if name in row}
    except OSError as error:
        raise ListError(f"{file}: cannot be read: {error.strerror}") from None


def _changed(place: Place) -> ListError:
    return ListError(f"{place}: the file changed while it was read; try again")


# Parquet


def _scan_parquet(file: Path, columns: Sequence[str]) -> Iterator[tuple[Place, Row]]:
    for number, row in _parquet_rows(file, columns, BATCH_ROWS, None):
        yield Place(file, number, 0), row


def _read_parquet(
    file: Path, places: Sequence[Place], columns: Sequence[str]
) -> Iterator[tuple[Place, Row]]:
    wanted = {place.number: place for place in places}
    for number, row in _parquet_rows(file, columns, 1, frozenset(wanted)):
        yield wanted.pop(number), row
    if wanted:
        raise _changed(min(wanted.values()))


def _parquet_rows(
    file: Path, columns: Sequence[str], batch_rows: int, wanted: frozenset[int] | None
) -> Iterator[tuple[int, Row]]:
    """(number, row) of the rows that are `wanted` (None: all, and only if no column is missing)."""
    import pyarrow.parquet  # 0.2 s, and only an import needs it

    try:
        with pyarrow.parquet.ParquetFile(file, buffer_size=BUFFER_BYTES, pre_buffer=False) as table:
            names = [name for name in columns if name in table.schema_arrow.names]
            if wanted is None and len(names) < len(columns):
                return
            start = 0
            for group in range(table.num_row_groups):
                end = start + table.metadata.row_group(group).num_rows
                if wanted is None or any(start < number <= end for number in wanted):
                    number = start
                    for batch in table.iter_batches(batch_rows, [group], columns=names):
                        for index in range(batch.num_rows):
                            number += 1
                            if wanted is None or number in wanted:
                                (row,) = batch.slice(index, 1).to_pylist()
                                yield number, {name: _plain(row[name]) for name in names}
                start = end
    except (OSError, pyarrow.ArrowException) as error:
        raise ListError(f"{file}: cannot be read as Parquet: {error}") from None


def _plain(value: Any) -> Any:
    """A date as the JSON lines have it: some copies store it as a moment."""
    return value.isoformat() if isinstance(value, datetime) else value
