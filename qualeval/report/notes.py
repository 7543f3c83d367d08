"""What the numbers of a run demand to be said, written by the tool and not by the operator. Pure.

Everything here is computed from summaries and contracts.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from qualeval.records import NO_SANDBOX, NOT_COMPARABLE, RunSummary, Summary
from qualeval.report.facts import marked
from qualeval.report.read import PartRead
from qualeval.table import totals


class Note(NamedTuple):
    """One thing to know: where it applies (empty: everywhere), what, and whether it is a warning:
    something that may change how a number is read.
    """

    where: str
    text: str
    warning: bool = False


def notes_of(run: RunSummary, parts: Mapping[str, PartRead]) -> list[Note]:
    """All notes of a run, warnings first; one that holds for several parts names them all."""
    where: dict[tuple[str, bool], list[str]] = {}
    for note in (*_of_parts(parts), *_of_run(run, parts)):
        where.setdefault((note.text, note.warning), []).append(note.where)
    said = [Note("; ".join(names), text, warning) for (text, warning), names in where.items()]
    return sorted(said, key=lambda note: not note.warning)


def _of_run(run: RunSummary, parts: Mapping[str, PartRead]) -> Iterator[Note]:
    if line := totals(run):
        yield Note("", f"{line}.")
    starts = {
        "yes": "All parts ran on one server start.",
        "no": "The parts did not all run on one server start.",
        "not known": "Whether all parts ran on one server start is not known.",
    }
    yield Note("", starts[run.one_server_start], run.one_server_start == "no")
    yield Note("", "There is no overall score: the rows measure different things.")
    suites = ", ".join(dict.fromkeys(part.summary.suite for part in parts.values()))
    yield Note("", f"{suites}: {NOT_COMPARABLE}.")


def _of_parts(parts: Mapping[str, PartRead]) -> Iterator[Note]:
    for part in parts.values():
        summary = part.summary
        yield from (Note(summary.title, _sentence(warning), True) for warning in summary.warnings)
        yield from _incomplete(summary)
        yield from _conditions(part)
        for row in summary.rows or (summary,):
            yield from _some_named(row)
        yield _load(summary)


def _sentence(text: str) -> str:
    return marked(f"{text[:1].upper()}{text[1:]}.")


def _incomplete(part: Summary) -> Iterator[Note]:
    if part.status != "ok":
        why = part.incomplete_because or "not all questions are answered"
        yield Note(part.title, f"Incomplete ({why}): no result is given.", True)
    if part.error_kinds:
        kinds = ", ".join(f"{count:,} x {kind}" for kind, count in part.error_kinds.items())
        text = f"Failed requests, which are no wrong answers: {kinds}."
        yield Note(part.title, text, True)


def _conditions(part: PartRead) -> Iterator[Note]:
    summary, conditions = part.summary, part.conditions
    if summary.sample_list:
        text = "Sample list: a few questions of our own, not a benchmark result."
        yield Note(summary.title, text, True)
    if part.own_list:
        text = "Own list: not comparable with a published figure of the same name."
        yield Note(summary.title, text, True)
    if summary.limits:
        yield Note(summary.title, f"Not the published limits: {', '.join(summary.limits)}.", True)
    if conditions.prompt_cache == "prompt cache not controlled":
        yield Note(summary.title, "The server's prompt cache was not controlled.", True)
    if summary.answered and summary.cache_check.state == "not reported by this server":
        text = "Whether prompts were served from a cache is not reported by this server."
        yield Note(summary.title, text)
    if summary.sampling_source is None:
        yield Note(summary.title, "Where the sampling settings come from is not stated.", True)
    # That there was none stands among the warnings.
    if conditions.sandbox is not None and not conditions.sandbox.startswith(NO_SANDBOX):
        yield Note(summary.title, f"Programs ran in: {conditions.sandbox}.")


def _some_named(row: Summary) -> Iterator[Note]:
    """How many answers named some of what was wanted, which counts as wrong."""
    ending = ": some named"
    for name, count in row.beside.items():
        if name.endswith(ending) and count.right:
            task = name.removesuffix(ending)
            counts = "it counts" if count.right == 1 else "they count"
            text = (
                f"{task}: {count.right:,} of {count.n:,} answers named some of the wanted values "
                f"but not all; {counts} as wrong."
            )
            yield Note(row.title, text)


def _load(part: Summary) -> Note:
    if part.alone:
        return Note(part.title, "Ran alone: its seconds are those of this load.")
    return Note(part.title, "Ran beside other parts: its seconds are of mixed load.")
