"""`qualeval summarize RUN --format table|md|csv|json`: the numbers of a run in other shapes."""

import csv
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from qualeval.errors import OptionError, RunFolderError, did_you_mean
from qualeval.grading import graded
from qualeval.publish import bundle_summary, is_bundle
from qualeval.recheck import label_of, open_part, started_parts, whole_lines
from qualeval.records import NOT_COMPARABLE, RunSummary, Summary, key_of
from qualeval.runfolder import RawReplies, read_failures, read_summary
from qualeval.summarize import summarize, summarize_run
from qualeval.table import markdown_table, text_table

COLUMNS = (
    ("label", "model", "part", "title", "subtitle", "status", "incomplete_because")
    + ("n", "answered", "right", "accuracy", "margin", "ci_low", "ci_high", "ci_method")
    + ("confidence", "cut_off", "errors", "repeats", "median_completion_tokens")
    + ("median_seconds", "wall_time", "alone", "started", "finished", "thinking", "max_tokens")
    + ("seed", "sampling", "sampling_source", "prompt_cache", "list", "sample_list", "limits")
    + ("suite", "conditions_sha256")
)
"""Fields of a Summary that are columns of the CSV, under their own names."""

MORE_COLUMNS = ("in_flight_mean", "in_flight_most", "cache_check", "note")


def summarize_command(run: Path, format: str) -> tuple[str, int]:
    """The summary of a run as text, and the exit code: 0 complete, 1 when a part is not.

    Raises OptionError for an unknown format, RunFolderError when the folder is no run.
    """
    if format not in WRITERS:
        hint = did_you_mean(format, WRITERS)
        raise OptionError(f"--format: '{format}' is unknown{hint}; there are: {', '.join(WRITERS)}")
    summary = run_summary(run)
    text = WRITERS[format](summary)
    complete = all(part.status == "ok" for part in summary.parts.values())
    return text if text.endswith("\n") else text + "\n", 0 if complete else 1


def run_summary(run: Path) -> RunSummary:
    """The summary of all parts that were started. Raises RunFolderError, ListError.

    Stored summaries are taken as they are. Where a part has more or fewer replies than its summary
    counts (its run was killed), its replies are graded anew in memory.
    """
    label = label_of(run)
    return summarize_run(label, {name: _part(run, name, label) for name in started_parts(run)})


def _part(run: Path, name: str, label: str) -> Summary:
    if is_bundle(run):
        return bundle_summary(run, name)
    stored = read_summary(run, name)
    if stored is not None and stored.answered == whole_lines(run / f"{name}.gen.jsonl"):
        return stored
    part = open_part(run, name)
    task, items = part.plan.task, {str(item.id): item for item in part.plan.list.items}
    if task.grader != part.conditions.grader:
        raise RunFolderError(
            f"{run}: part '{name}' was never summarized, and its grader {part.conditions.grader} "
            f"is not {task.grader} of this program; grade it first: qualeval grade {run}"
        )
    task.prepare()
    replies = RawReplies(run / f"{name}.gen.jsonl")
    keys = [key_of(id, repeat) for repeat in range(part.plan.repeats) for id in items]
    failures = read_failures(run / f"{name}.errors.jsonl")
    still_open = {key: failed for key, failed in failures.items() if key not in replies}
    answers = graded(task, items, replies.get(iter(keys)))
    return summarize(task, label, part.contract, answers, still_open)


def csv_table(run: RunSummary) -> str:
    """One line a part under one line of names; shares from 0 to 1, what is not known is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((*COLUMNS, *MORE_COLUMNS))
    for part in run.parts.values():
        for row in part.rows or (part,):
            writer.writerow([*(_cell(row, column) for column in COLUMNS), *_more(row)])
    return out.getvalue()


def _cell(part: Summary, column: str) -> object:
    value = getattr(part, column)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return json.dumps(value)
    return "; ".join(value) if isinstance(value, tuple) else value


def _more(part: Summary) -> tuple[object, ...]:
    mean, most = (part.in_flight.mean, part.in_flight.most) if part.in_flight else (None, None)
    note = NOT_COMPARABLE
    if part.sample_list:
        note = f"sample list, not a benchmark result; {note}"
    return mean, most, part.cache_check.state, note


def json_text(run: RunSummary) -> str:
    """The same as `summary.json`."""
    return run.model_dump_json(indent=2)


WRITERS: Mapping[str, Callable[[RunSummary], str]] = {
    "table": text_table,
    "md": markdown_table,
    "csv": csv_table,
    "json": json_text,
}
"""What `--format` takes."""
