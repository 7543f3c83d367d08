"""`qualeval runs [DIR]`: every run below a folder, and what it measured.

One row of one run is one measurement with one value. A repetition (`<job>-rep1`, ...) stands below
its job and is a measurement of its own: rows are never merged and the best is never picked. Rows
that are missing or incomplete are named; a folder that cannot be read is a line, not an end.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from qualeval.errors import OptionError, QualevalError
from qualeval.recheck import whole_lines
from qualeval.records import Summary
from qualeval.reopen import contract_of, parts_of
from qualeval.runfolder import read_summary
from qualeval.table import percent_of, points
from qualeval.tasks import TASKS

HEAD = ("run", "row", "result, 95 % margin", "right", "status", "date", "model")

END = ".contract.json"

REPETITION = re.compile(r"(?P<job>.+)-rep(?P<number>[1-9]\d{0,5})")


@dataclass(slots=True)
class ListedRun:
    """One run folder: its rows, and what is wrong with the rest of it."""

    name: str
    rows: list[tuple[str, ...]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    conditions: dict[str, str] = field(default_factory=dict)


def runs_command(folder: Path) -> list[str]:
    """A table of all runs below `folder` (or of the run that it is). Raises OptionError."""
    if not folder.is_dir():
        raise OptionError(f"{folder}: there is no such folder")
    if parts_of(folder):
        return _table([_listed(folder, folder.resolve().name)], {})
    try:
        paths = [path for path in folder.iterdir() if path.is_dir() and path.name[0] != "."]
    except OSError as error:
        raise OptionError(f"{folder}: cannot be read: {error.strerror}") from None
    runs = [_listed(path, path.name) for path in sorted(paths, key=lambda path: _order(path.name))]
    if not runs:
        return [f"{folder}: no run yet"]
    return _table(runs, {run.name: run for run in runs})


def _order(name: str) -> tuple[str, int]:
    """Repetitions right behind their job, by number."""
    found = REPETITION.fullmatch(name)
    return (found["job"], int(found["number"])) if found else (name, 0)


def _listed(path: Path, name: str) -> ListedRun:
    """What one folder holds."""
    run = ListedRun(name)
    names = parts_of(path)
    contracts = sorted(file.name.removesuffix(END) for file in path.glob(f"*{END}"))
    other = [name for name in contracts if name not in TASKS]
    if not names and not other:
        run.remarks.append("no run: nothing was asked here")
        return run
    for part in names:
        try:
            _add_part(run, path, part)
        except QualevalError as error:
            run.remarks.append(f"broken: {str(error).replace(f'{path}/', '')}")
    if missing := [part for part in TASKS if part not in names]:
        run.remarks.append(f"never run: {', '.join(missing)}")
    if other:
        run.remarks.append(f"not in this version of qualeval: {', '.join(other)}")
    return run


def _add_part(run: ListedRun, path: Path, part: str) -> None:
    contract, conditions = contract_of(path, part)
    summary = read_summary(path, part)
    replies = whole_lines(path / f"{part}.gen.jsonl")
    run.conditions[part] = contract.conditions_sha256
    date = contract.sessions[-1].started[:10] if contract.sessions else ""
    title = TASKS[part].title
    if summary is None or summary.replies != replies:
        n = conditions.list.items * conditions.repeats
        status = f"not summarized ({replies} of {n} replies): run it again, or qualeval grade"
        run.rows.append((title, "", "", status, date, conditions.model))
        return
    for row in summary.rows or (summary,):
        run.rows.append((row.title, *_result(row), _status(row), date, row.model))


def _result(summary: Summary) -> tuple[str, str]:
    if summary.accuracy is None or summary.margin is None:
        return "", f"{summary.answered} of {summary.n} answered"
    result = f"{percent_of(summary.right, summary.n)} % ± {points(summary.margin)} pts"
    return result, f"{summary.right}/{summary.n}"


def _status(summary: Summary) -> str:
    """`ok` or why not, and whatever keeps the row from being the published one."""
    said = ["ok" if summary.status == "ok" else f"incomplete ({summary.incomplete_because})"]
    if summary.sample_list:
        said.append("sample list")
    elif summary.list.startswith("file:"):
        said.append("own list")
    if summary.limits:
        said.append("not the published limits")
    if summary.repeats > 1:
        said.append(f"{summary.repeats} answers a question")
    return ", ".join(said)


def _table(runs: Sequence[ListedRun], by_name: Mapping[str, ListedRun]) -> list[str]:
    """The rows of all runs, aligned; remarks below the rows of their run."""
    table: list[tuple[str, ...]] = [HEAD]
    remarks: dict[int, list[str]] = {}
    for run in runs:
        cells = run.rows or [("",)]
        table += [(run.name if first == 0 else "", *row) for first, row in enumerate(cells)]
        remarks[len(table)] = [*_repetition(run, by_name), *run.remarks]
    lines: list[str] = []
    for number, line in enumerate(aligned(table), start=1):
        lines += [line, *(f"  {remark}" for remark in remarks.get(number, ()))]
    return lines


def _repetition(run: ListedRun, by_name: Mapping[str, ListedRun]) -> Iterable[str]:
    """What a folder named as a repetition is."""
    found = REPETITION.fullmatch(run.name)
    job = by_name.get(found["job"]) if found else None
    if found is None or job is None:
        return
    yield f"repetition {found['number']} of {job.name}: a measurement of its own, never merged"
    for part in run.conditions.keys() & job.conditions.keys():
        if run.conditions[part] != job.conditions[part]:
            yield f"but {part} was asked under other conditions than in {job.name}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines with their columns below each other; short rows have fewer cells."""
    widths = [
        max(_width(row[column]) for row in rows if column < len(row))
        for column in range(max(map(len, rows)))
    ]
    return [
        "  ".join(
            cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=False)
        ).rstrip()
        for row in rows
    ]


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
