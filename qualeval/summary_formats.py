"""`qualeval summarize RUN --format table|md|csv|json|model-index`: the numbers in other shapes."""

import csv
import io
import json
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path

from qualeval.errors import OptionError, RunFolderError, did_you_mean
from qualeval.grading import graded
from qualeval.publish import bundle_summary, is_bundle
from qualeval.recheck import label_of, open_part, started_parts, whole_lines
from qualeval.records import NOT_COMPARABLE, RunSummary, Summary
from qualeval.runfolder import RawReplies, read_summary, still_open
from qualeval.summarize import summarize, summarize_run
from qualeval.table import markdown_table, newest_of, percent_of, points, text_table
from qualeval.tasks import TASKS

COLUMNS = (
    ("label", "model", "part", "title", "subtitle", "status", "incomplete_because")
    + ("n", "answered", "right", "accuracy", "margin", "ci_low", "ci_high", "ci_method")
    + ("confidence", "cut_off", "errors", "repeats", "median_completion_tokens")
    + ("median_seconds", "wall_time", "alone", "started", "finished", "thinking", "max_tokens")
    + ("seed", "sampling", "sampling_source", "prompt_cache", "list", "release", "sample_list")
    + ("limits", "suite", "conditions_sha256")
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
    if stored is not None and stored.replies == whole_lines(run / f"{name}.gen.jsonl"):
        return stored
    if TASKS[name].runs_code and whole_lines(run / f"{name}.gen.jsonl"):
        raise RunFolderError(
            f"{run}: part '{name}' has replies that were not judged yet, and judging runs "
            f"programs; do that first: qualeval grade {run}"
        )
    part = open_part(run, name)
    task = part.plan.task
    if task.grader != part.conditions.grader:
        raise RunFolderError(
            f"{run}: part '{name}' was never summarized, and its grader {part.conditions.grader} "
            f"is not {task.grader} of this program; grade it first: qualeval grade {run}"
        )
    task.prepare()
    replies = RawReplies(run / f"{name}.gen.jsonl")
    outcomes = chain(graded(part.plan, replies), still_open(run, name, replies))
    return summarize(task, label, part.contract, outcomes)


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


def model_index(run: RunSummary) -> str:
    """The block for the metadata of a model card on the Hugging Face hub.

    https://github.com/huggingface/hub-docs/blob/main/modelcard.md. Values are the percent that the
    table prints. Incomplete parts are named in a comment and have no value; a sample list is called
    one in the name of its data set, which is never that of the benchmark. ASCII only.
    """
    import yaml

    parts = list(run.parts.values())
    rows = [row for part in parts for row in part.rows or (part,)]
    model = parts[0].model if parts else run.label
    taken: set[tuple[object, ...]] = set()
    results = [_index_result(row, taken) for row in rows if row.accuracy is not None]
    block = {"model-index": [{"name": model, "results": results}]} if results else {}
    suites = ", ".join(dict.fromkeys(part.suite for part in parts))
    comments = [
        "For the metadata at the top of a model card, between its lines `---`.",
        f"{suites}, {NOT_COMPARABLE}.",
        "To each result add `source: {name: .., url: ..}`: the page with the raw answers.",
    ]
    for row in rows:
        if row.accuracy is None:
            comments.append(f"Left out, incomplete: {row.title} ({row.incomplete_because}).")
    said = "".join(f"# {line}\n" for line in comments)
    return said + (yaml.safe_dump(block, sort_keys=False, width=1000) if block else "")


def _index_result(row: Summary, taken: set[tuple[object, ...]]) -> dict[str, object]:
    """One result. The hub's tools merge results of one data set and configuration: a row whose
    pair is `taken` names itself in its configuration.
    """
    source = TASKS[row.part].source
    official = row.list.startswith("qualeval/")
    own = "" if official or row.sample_list else "own list; "
    sample = "sample list, not a benchmark result; " if row.sample_list else ""
    name = f"{row.title} ({sample}{own}{row.suite})"
    dataset: dict[str, object] = {"name": name, "type": row.list}
    if official and source.dataset:
        dataset["type"] = source.dataset
        given = {"config": source.config, "split": source.split}
        dataset |= {field: value for field, value in given.items() if value}
    if (dataset["type"], dataset.get("config")) in taken:
        own_config = [source.config] if official and source.config else []
        dataset["config"] = ", ".join([*own_config, row.title])
    taken.add((dataset["type"], dataset.get("config")))
    newest = {"rows": newest_of(row)} if row.release is not None else {}
    dataset["args"] = {"list": row.list, **newest}
    args: dict[str, object] = {
        "right": row.right,
        "n": row.n,
        "cut_off": row.cut_off,
        "confidence": row.confidence,
        "ci_low": float(points(row.ci_low or 0.0)),
        "ci_high": float(points(row.ci_high or 0.0)),
        "max_tokens": row.max_tokens,
        "thinking": row.thinking,
        "seed": row.seed,
        "sampling": row.sampling,
    }
    if row.limits:
        args["not_the_published_limits"] = list(row.limits)
    metric = {
        "type": "accuracy",
        "value": float(percent_of(row.right, row.n)),
        "name": f"{row.title}, {row.subtitle}: % right, cut off counts as wrong",
        "args": args,
    }
    task = {"type": "text-generation", "name": "Text generation"}
    return {"task": task, "dataset": dataset, "metrics": [metric]}


WRITERS: Mapping[str, Callable[[RunSummary], str]] = {
    "table": text_table,
    "md": markdown_table,
    "csv": csv_table,
    "json": json_text,
    "model-index": model_index,
}
"""What `--format` takes."""
