"""Fixed lists: draw, pin, fetch, import, verify.

A list is official (drawn by hash and pinned as shipped, or the newest rows and locked by the first
fetch or import; every row is proved and kept in the list cache), `sample` (small, ours, in the
package), or a file of the user. Whatever its kind, its items come with one sha256: that of its row
hashes in list order, one a line.
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from qualeval.errors import ListError
from qualeval.list_rows import rows_of_hub, rows_of_user_file, tables_below, write_jsonl
from qualeval.newest_list import (
    describe_newest,
    fetch_newest,
    import_newest,
    lock_of,
    locked_rows,
    said_of_lock,
)
from qualeval.pins import (
    Lock,
    Pin,
    list_sha256,
    origin_path,
    pinned_row,
    pinned_rows,
    rows_path,
)
from qualeval.records import Item, Json, now
from qualeval.tasks import TASKS
from qualeval.tasks.base import Draw, Newest, Row, Source, Task
from qualeval.whole_file import write_whole

DRAW_SEED = 42
"""A constant of the lists, not the card's seed."""

QUOTA_RULE = "largest remainder on pool counts, ties by stratum name"


@dataclass(frozen=True, slots=True)
class ItemList:
    """A list ready to be asked. `origin` says where official rows came from; `path` is the file of
    a user's own list and `kept_rows` are what a made list is remembered by: a run keeps a copy of
    either, since nothing else could bring them back. `release` and `dates`, the first and last one,
    tell which rows the newest ones of a data set are.
    """

    id: str
    kind: Literal["official", "sample", "file"]
    items: tuple[Item, ...]
    sha256: str
    origin: Mapping[str, str | None]
    path: Path | None = None
    kept_rows: tuple[Json, ...] = ()
    tokenizer_sha256: str | None = None
    token_counts: str | None = None
    release: str | None = None
    dates: tuple[str, str] | None = None

    @property
    def by_id(self) -> dict[str, Item]:
        """The items in list order; ids are compared as text."""
        return {str(item.id): item for item in self.items}


def load_list(task: Task, choice: str, folder: Path) -> ItemList:
    """The list that a card names: `official`, `sample`, or a path relative to `folder`.

    An official list that is not in the cache is fetched. Raises ListError.
    """
    if choice == "sample":
        packaged = files("qualeval.tasks") / "samples" / f"{task.source.name}.jsonl"
        with_path = Path(str(packaged))
        return _user_list(task, with_path, f"sample/{task.source.name}", "sample")
    if choice == "official":
        return official_list(task)
    return _user_list(task, folder / choice, f"file:{Path(choice).name}", "file")


def _user_list(task: Task, path: Path, id: str, kind: Literal["sample", "file"]) -> ItemList:
    items = items_of_file(task, path)
    own = path if kind == "file" else None
    return ItemList(id, kind, items, list_sha256(item.sha256 for item in items), {}, own)


def items_of_file(task: Task, path: Path) -> tuple[Item, ...]:
    """The items of a JSON-lines file in the task's own format. Raises ListError with the line."""
    items: dict[str, Item] = {}
    for number, row in rows_of_user_file(path):
        try:
            item = task.item(row)
        except (ValueError, RecursionError) as error:
            raise ListError(f"{path}:{number}: {error}") from None
        if str(item.id) in items:
            raise ListError(f"{path}:{number}: id {item.id!r} occurs twice")
        items[str(item.id)] = item
    if not items:
        raise ListError(f"{path}: holds no question")
    return tuple(items.values())


# Official lists


def pin_of(part: str) -> Pin | Lock:
    """What proves a part's official list: the pin as shipped, or the lock of the newest rows.

    Raises ListError when there is no lock yet.
    """
    task = TASKS[part]
    return lock_of(task, task.draw) if isinstance(task.draw, Newest) else _shipped_pin(part)


@cache
def _shipped_pin(part: str) -> Pin:
    text = (files("qualeval.tasks") / "lists" / f"{part}.json").read_text(encoding="utf-8")
    return Pin.model_validate_json(text)


def official_list(task: Task) -> ItemList:
    """The official list of a task, every row proved against its pin or its lock.

    A pinned list that is not in the cache is fetched; the newest rows, which are gigabytes to
    fetch, only by the command that says so. Raises ListError.
    """
    refuse_made(task)
    if isinstance(task.draw, Newest):
        lock, rows = locked_rows(task, task.draw)
        found = _official(task, lock, rows)
        return dataclasses.replace(found, release=lock.release, dates=lock.dates)
    pin = pin_of(task.name)
    return _official(task, pin, _cached_rows(task, pin))


def _cached_rows(task: Task, pin: Pin | Lock) -> list[Row]:
    rows_file = rows_path(task.source)
    if not rows_file.exists():
        fetch(task.source)
    try:
        rows = [row for _, row in rows_of_user_file(rows_file)]
        return pinned_rows(task.source, pin, rows, str(rows_file))
    except ListError as error:
        again = f"`qualeval lists fetch {task.source.name}` takes it anew"
        raise ListError(f"{error}\n{again}") from None


def _official(task: Task, pin: Pin | Lock, rows: Iterable[Row]) -> ItemList:
    try:
        origin = dict(json.loads(origin_path(task.source).read_bytes()))
    except (OSError, ValueError, TypeError):
        origin = {"from": "unknown"}
    items = tuple(task.official_item(row) for row in rows)
    return ItemList(pin.list, "official", items, pin.sha256, origin)


def refuse_made(task: Task) -> None:
    """Raise ListError for a part whose items are made: there is nothing to fetch or import."""
    if task.maker is not None:
        raise ListError(
            f"part '{task.name}' has no list to fetch or import: its texts are made for each "
            "model, by its own tokenizer"
        )


def fetch(source: Source) -> Path:
    """Fetch a source's rows from the hub into the cache; the path written. Raises ListError."""
    for task in tasks_of(source):
        refuse_made(task)
        if isinstance(task.draw, Newest):
            return fetch_newest(task, task.draw)
    rows, revision = rows_of_hub(source)
    return _keep(source, rows, f"hub:{source.dataset}", {"from": "hub", "revision": revision})


def import_rows(source: Source, path: Path) -> Path:
    """Take a source's rows from a file or folder into the cache; the path written.

    A folder or zip may hold several tables: the first one with all pinned rows is taken, whatever
    else lies there; the newest rows are those of all tables together. Raises ListError with what
    each candidate lacked.
    """
    for task in tasks_of(source):
        refuse_made(task)
        if isinstance(task.draw, Newest):
            return import_newest(task, task.draw, path)
    problems = []
    for name, rows in tables_below(path, source):
        if isinstance(rows, ListError):
            problems.append(str(rows))
        elif rows and source.id_field in rows[0]:
            try:
                return _keep(source, rows, name, {"from": "file", "file": Path(name).name})
            except ListError as error:
                problems.append(str(error))
    nothing = f"{path}: holds no table with the columns of {source.dataset}"
    raise ListError("\n".join(problems) or nothing)


def proof(task: Task) -> str:
    """What holds for the rows that a fetch or an import has written, in words."""
    if isinstance(task.draw, Newest):
        return said_of_lock(task, task.draw)
    return "every row is the pinned one"


def _keep(
    source: Source, rows: Iterable[Row], where: str, origin: Mapping[str, str | None]
) -> Path:
    """Write the rows that any pinned list of the source needs, proved, into the cache."""
    rows = list(rows)
    kept: dict[str, Row] = {}
    for task in tasks_of(source):
        for row in pinned_rows(source, pin_of(task.name), rows, where):
            kept[str(row[source.id_field])] = {c: row[c] for c in source.columns}
    target = rows_path(source)
    facts = {"dataset": source.dataset, "taken": now(), **origin}
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(origin_path(source), json.dumps(facts).encode())
        write_whole(target, write_jsonl(list(kept.values())))
    except OSError as error:
        raise ListError(f"{target}: cannot be written: {error.strerror}") from None
    return target


def tasks_of(source: Source) -> list[Task]:
    """The tasks whose official lists are drawn from a source."""
    return [task for task in TASKS.values() if task.source.name == source.name]


# Drawing


def draw_key(namespace: str, id: object) -> str:
    """The hash that rows are sorted by: independent of row order and of any random generator."""
    return hashlib.sha256(f"qualeval/{namespace}/v1/{DRAW_SEED}/{id}".encode()).hexdigest()


def quotas(counts: Mapping[str, int], size: int) -> dict[str, int]:
    """Seats of each stratum out of `size`, by the largest-remainder method; ties by name."""
    total = sum(counts.values())
    seats = {name: size * count // total for name, count in counts.items()}
    by_remainder = sorted(counts, key=lambda name: (-(size * counts[name] % total), name))
    for name in by_remainder[: size - sum(seats.values())]:
        seats[name] += 1
    return seats


def drawn(source: Source, draw: Draw, pool: Sequence[Row]) -> list[Row]:
    """The rows of an official list: strata by name, hash order within a stratum."""
    strata: dict[str, list[Row]] = {}
    for row in pool:
        strata.setdefault(source.stratum(row), []).append(row)
    size = len(pool) if draw.size is None else draw.size
    seats = quotas({name: len(rows) for name, rows in strata.items()}, size)
    chosen: list[Row] = []
    for name in sorted(strata):
        order = sorted(strata[name], key=lambda r: draw_key(draw.namespace, r[source.id_field]))
        chosen += order[: seats[name]]
    return chosen


def make_pin(task: Task, rows: Iterable[Row], revision: str | None) -> Pin:
    """The pin of a task's official list, drawn from all rows of its source."""
    source = task.source
    draw = _shipped_draw(task)
    pool = source.clean(rows)
    pinned = tuple(pinned_row(source, row) for row in drawn(source, draw, pool.rows))
    return Pin(
        list=f"qualeval/{task.name}-{len(pinned)}/v1",
        dataset=source.dataset,
        config=source.config,
        split=source.split,
        revision=revision,
        namespace=draw.namespace,
        seed=DRAW_SEED,
        quota_rule=QUOTA_RULE,
        pool=len(pool.rows),
        left_out=dict(pool.left_out),
        sha256=list_sha256(row.sha256 for row in pinned),
        rows=pinned,
    )


def _shipped_draw(task: Task) -> Draw:
    """How a task's list is drawn by hash. Raises ListError when it is not."""
    if isinstance(task.draw, Newest):
        raise ListError(
            f"part '{task.name}' has no pin to ship: its list is the newest rows, locked by "
            f"`qualeval lists fetch {task.name}` or `qualeval lists import {task.name} FILE`"
        )
    return task.draw


def drawn_pin(task: Task, path: Path) -> Pin:
    """The pin drawn from the first table below `path` that has the source's columns.

    Raises ListError when there is none, and for a list that is not drawn by hash.
    """
    _shipped_draw(task)
    for name, rows in tables_below(path, task.source):
        wanted = task.source.config or ""
        if isinstance(rows, ListError) or not rows:
            continue
        if task.source.id_field in rows[0] and wanted in name:
            return make_pin(task, rows, None)
    raise ListError(f"{path}: holds no table with the columns of {task.source.dataset}")


def describe(task: Task) -> list[str]:
    """What a task's official list is and whether its rows are here, a line each; no text."""
    refuse_made(task)
    if isinstance(task.draw, Newest):
        return describe_newest(task, task.draw)
    pin = pin_of(task.name)
    assert isinstance(pin, Pin)
    rows_file = rows_path(task.source)
    strata: dict[str, int] = {}
    for row in pin.rows:
        strata[row.stratum] = strata.get(row.stratum, 0) + 1
    lines = [
        f"list      {pin.list}, {len(pin.rows)} items, sha256 {pin.sha256}",
        f"drawn     from {pin.pool:,} rows of {pin.dataset} ({pin.split}), {pin.quota_rule}",
        "left out  " + (", ".join(f"{n} {why}" for why, n in pin.left_out.items()) or "none"),
        "strata    " + ", ".join(f"{name} {count}" for name, count in strata.items()),
    ]
    if task.source.gated:
        lines.append("gated     its text stays on this machine: never published, never printed")
    if not rows_file.exists():
        hint = f"qualeval lists fetch {task.name}, or: qualeval lists import {task.name} FILE"
        return [*lines, f"here      no ({rows_file}); {hint}"]
    official_list(task)
    return [*lines, f"here      yes, every row proved: {rows_file}"]
