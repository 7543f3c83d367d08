"""The page of one run."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from qualeval.records import Summary, key_of
from qualeval.report import facts
from qualeval.report.answers import OUTCOMES, Entry, data_of
from qualeval.report.notes import notes_of
from qualeval.report.page import Page, page
from qualeval.report.plot import bars, intervals
from qualeval.report.read import PartRead, Prompts, RunRead, answers_of, failures_of, read_run
from qualeval.report.sides import side_of, side_of_failure
from qualeval.table import footer, rows

NOT_FOR_PUBLICATION = (
    "This file holds questions that must not appear in plain text online: their authors ask for "
    "that, or nobody here has the right to pass them on; and models are trained on what is online, "
    "so that the benchmark then measures nothing. Do not publish this file, and do not send it on."
)


def not_to_publish(part: PartRead, prompts: Prompts) -> bool:
    """Whether a page has questions of this part that may not leave."""
    return part.leak_policy != "open" and not prompts.why_not


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row of the table, made of the words that `qualeval summarize` prints; `counts` is the
    page's own.
    """

    title: str
    lines: tuple[str, ...]
    result: str
    margin: str
    low_high: str
    right: str
    cut_off: str
    errors: str
    complete: bool
    sample: bool
    own: bool
    counts: str


def run_page(folder: Path, page_folder: Path, *, with_prompts: bool) -> Page:
    """The page of the run at `folder`, with addresses as from `page_folder`.

    Raises RunFolderError, ListError.
    """
    run = read_run(folder)
    prompts = {name: Prompts(run, name, with_prompts=with_prompts) for name in run.parts}
    titles = [(name, part.summary.title) for name, part in run.parts.items()]
    no_prompt = {name: own.why_not for name, own in prompts.items() if own.why_not}
    entries = (entry for name in run.parts for entry in entries_of(run, name, prompts[name]))
    data = data_of("run", titles, OUTCOMES, entries, no_prompt=no_prompt)
    kept = [name for name in run.parts if not_to_publish(run.parts[name], prompts[name])]
    files = facts.files_of(folder, page_folder)
    values = {
        "title": run.summary.label,
        "not_to_publish": NOT_FOR_PUBLICATION if kept else "",
        "gated": [p.summary.title for p in run.parts.values() if p.leak_policy == "gated"],
        "parts": [part_values(run, part, page_folder) for part in run.parts.values()],
        "files": files,
        "card": next((file.address for file in files if file.name == "card.json"), ""),
        **values_of(run),
    }
    said = [f"it holds questions ({', '.join(kept)}) that must not be published"] if kept else []
    return page("run.html.j2", data, values, said)


def values_of(run: RunRead) -> dict[str, object]:
    """What the top of a page, its table and its notes say of a run."""
    every = list(run.summary.parts.values())
    shown = [row for part in every for row in part.rows or (part,)]
    own = {name for name, part in run.parts.items() if part.own_list}
    return {
        "label": run.summary.label,
        "model": ", ".join(dict.fromkeys(part.model for part in every)),
        "when": facts.when(run),
        "server": facts.server_of(run),
        "bundle": run.bundle,
        "deviation_words": facts.deviation_words(run.setup),
        "deviations": facts.deviations_of(run.setup),
        "setup": facts.setup_of(run.setup),
        "start_command": facts.command_pieces(run.setup.start_command or ""),
        "operator_notes": run.card.notes,
        "references": facts.references_of(run.card.references),
        "table": [table_row(row, own=row.part in own) for row in shown],
        "plot": intervals(shown, own),
        "samples": [part.title for part in every if part.sample_list],
        "own": sorted(own),
        "notes": notes_of(run.summary, run.parts),
        "footer": footer(every),
    }


def table_row(summary: Summary, *, own: bool = False) -> TableRow:
    """A row with the cells and the lines under it that every table of ours has."""
    (title, result, right, cut_off, low_high, errors), *below = rows(summary)
    result, _, margin = result.partition(" ± ")
    return TableRow(
        title=summary.title if title.startswith(summary.title) else title,
        lines=tuple(line[0].strip() for line in below),
        result=result,
        margin=margin and f"± {margin}",
        low_high=low_high,
        right=right,
        cut_off=cut_off,
        errors=errors,
        complete=summary.accuracy is not None,
        sample=summary.sample_list,
        own=own,
        counts=f"{summary.right:,} / {summary.n:,}",
    )


def part_values(run: RunRead, part: PartRead, page_folder: Path) -> dict[str, object]:
    """What the section of a part shows."""
    summary = part.summary
    several = summary.rows or (summary,)
    return {
        "name": part.name,
        "title": summary.title,
        "subtitle": facts.marked(summary.subtitle),
        "sample": summary.sample_list,
        "own": part.own_list,
        "rows": [table_row(row) for row in several],
        "strata": [
            (row.title, bars((name, k.right, k.n) for name, k in row.strata.items()))
            for row in several
            if row.strata
        ],
        "rules": [(rule, f"{n:,}", _address(part.name, rule)) for rule, n in summary.rules.items()],
        "measures": [(row.title, facts.measures_of(row)) for row in several],
        "conditions": facts.conditions_of(part),
        "template": part.conditions.prompt.template,
        "commands": [
            (facts.command_pieces(command), starts) for command, starts in facts.commands_of(part)
        ],
        "files": facts.files_of(run.folder, page_folder, part.name),
        "gated": part.leak_policy == "gated",
    }


def _address(part: str, rule: str) -> str:
    """Where in the page the answers that a rule decided are listed."""
    return "#" + urlencode({"part": part, "rule": rule}, errors="replace")


def entries_of(run: RunRead, name: str, prompts: Prompts) -> Iterator[Entry]:
    """The answers of a part in list order, then the requests that were given up."""
    answered = set()
    for told in answers_of(run, name):
        answer, side = told.answer, side_of(told)
        id = str(answer.id)
        answered.add(key_of(answer.id, answer.repeat))
        stratum = answer.stratum or ""
        prompt = prompts.of(id)
        yield Entry(id, answer.repeat, name, side.outcome, stratum, (side,), prompt)
    for failed in failures_of(run, name, answered):
        side, id = side_of_failure(failed), str(failed.id)
        stratum = prompts.stratum(id)
        yield Entry(id, failed.repeat, name, "error", stratum, (side,), prompts.of(id))
