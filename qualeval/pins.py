"""What proves an official list: its pin, or its lock; and the cache of the rows that they prove.

A pin ships with the program. A lock is written beside the cached rows by the first fetch or import
of a list that no pin can be shipped for.
"""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

from qualeval.errors import ListError
from qualeval.records import ItemId, Record, sha256_of
from qualeval.tasks.base import Row, Source


class PinnedRow(Record):
    """One row of an official list: no text, only what proves it."""

    id: ItemId
    stratum: str
    sha256: str


class Pin(Record):
    """An official list, pinned: `sha256` is over the row hashes in list order."""

    list: str
    dataset: str
    config: str | None
    split: str
    revision: str | None
    namespace: str
    seed: int
    quota_rule: str
    pool: int
    left_out: dict[str, int]
    sha256: str
    rows: tuple[PinnedRow, ...]


class Lock(Record):
    """The newest rows of a data set, pinned on this machine.

    `release` tells the published files that were read, `dates` the first and last date among the
    chosen rows, `pool` how many rows there were to choose from, `tests` how many tests the chosen
    ones have in all.
    """

    list: str
    dataset: str
    revision: str | None
    release: str
    dates: tuple[str, str]
    pool: int
    left_out: dict[str, int]
    platforms: dict[str, int]
    tests: int
    sha256: str
    rows: tuple[PinnedRow, ...]


def text_of(pinned: Pin | Lock) -> str:
    """A pin as it stands in `tasks/lists/`, a lock as it is kept: one row a line, so that a change
    shows as a line.
    """
    head = pinned.model_dump(mode="json", exclude={"rows"})
    rows = ",\n".join("  " + json.dumps(row.model_dump()) for row in pinned.rows)
    return json.dumps(head, indent=1)[:-2] + f',\n "rows": [\n{rows}\n ]\n}}\n'


def list_sha256(row_hashes: Iterable[str]) -> str:
    """sha256 of the row hashes in list order, one a line."""
    return hashlib.sha256("".join(f"{h}\n" for h in row_hashes).encode()).hexdigest()


def pinned_row(source: Source, row: Row) -> PinnedRow:
    """What proves a row."""
    return PinnedRow(
        id=row[source.id_field],
        stratum=source.stratum(row),
        sha256=sha256_of(source.canonical(row)),
    )


def pinned_rows(source: Source, pin: Pin | Lock, rows: Iterable[Row], where: str) -> list[Row]:
    """The rows of the pinned list, in its order.

    Raises ListError naming the first id that is missing or whose row is not the pinned one.
    """
    by_id = {str(row.get(source.id_field)): row for row in rows}
    chosen = []
    for pinned in pin.rows:
        row = by_id.get(str(pinned.id))
        if row is None:
            raise ListError(f"{where}: row {pinned.id} of list '{pin.list}' is missing")
        lacking = [column for column in source.columns if column not in row]
        if lacking:
            raise ListError(f"{where}: row {pinned.id} lacks column '{lacking[0]}'")
        if not _is_pinned(source, pinned, row):
            raise ListError(
                f"{where}: row {pinned.id} differs from the pinned one of list '{pin.list}'; "
                "this is another revision, and its results would not be comparable"
            )
        chosen.append(row)
    return chosen


def _is_pinned(source: Source, pinned: PinnedRow, row: Row) -> bool:
    """Whether a row is the pinned one. The stratum need not be part of the hashed columns."""
    try:
        found = sha256_of(source.canonical(row))
    except TypeError:  # a value, such as bytes, that no pinned row has
        return False
    return found == pinned.sha256 and source.stratum(row) == pinned.stratum


# The cache


def cache_folder() -> Path:
    """Where list rows are kept: `$QUALEVAL_CACHE`, else the user's cache folder."""
    chosen = os.environ.get("QUALEVAL_CACHE")
    if chosen:
        return Path(chosen) / "lists"
    import platformdirs

    return Path(platformdirs.user_cache_dir("qualeval")) / "lists"


def rows_path(source: Source) -> Path:
    """Where a source's rows are kept."""
    return cache_folder() / f"{source.name}.jsonl"


def origin_path(source: Source) -> Path:
    """Where it stands how a source's rows came here."""
    return cache_folder() / f"{source.name}.origin.json"
