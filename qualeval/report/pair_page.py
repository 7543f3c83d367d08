"""The page of one run against another: both tables, the differences, and answers side by side."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from qualeval import compare_table
from qualeval.comparable import ComparedRun
from qualeval.compare import Comparison, Options, compare
from qualeval.compare_runs import read_run as read_compared
from qualeval.compare_runs import run_names
from qualeval.errors import ContractError, OptionError
from qualeval.records import key_of
from qualeval.report import facts
from qualeval.report.answers import PAIR_OUTCOMES, Entry, data_of
from qualeval.report.page import Page, page
from qualeval.report.plot import differences
from qualeval.report.read import Prompts, RunRead, answers_of, read_run
from qualeval.report.run_page import NOT_FOR_PUBLICATION, not_to_publish, values_of
from qualeval.report.sides import Side, side_of
from qualeval.tasks import TASKS


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """One row of the table of differences, in the words of `qualeval compare`."""

    title: str
    subtitle: str
    cells: tuple[str, ...]
    verdict: str
    word: str
    own: bool


def _shared_parts(base: ComparedRun, new: ComparedRun) -> tuple[list[ComparedRun], list[str]]:
    """The runs with the parts that are complete in both, and what is said of the others. As they
    are where they share none: then comparing them says why.
    """
    whole = [
        {name for name, part in run.parts.items() if part.incomplete is None} for run in (base, new)
    ]
    shared = whole[0] & whole[1]
    others = [name for name in {**base.parts, **new.parts} if name not in shared]
    if not shared or not others:
        return [base, new], []
    runs = [
        replace(run, parts={n: part for n, part in run.parts.items() if n in shared})
        for run in (base, new)
    ]
    titles = ", ".join(TASKS[name].title if name in TASKS else name for name in others)
    return runs, [f"Left out, not complete in both runs: {titles}."]


def pair_page(base: Path, new: Path, *, with_prompts: bool) -> Page:
    """The page of `new` against `base`, over the parts that are complete in both. Raises
    QualevalError as `qualeval compare` does: the conditions must be the same.
    """
    if base.resolve() == new.resolve():
        raise OptionError(f"{new}: is given twice; a run is one measurement")
    names = run_names([base, new])
    compared = [read_compared(path, name) for path, name in zip((base, new), names, strict=True)]
    compared, left_out = _shared_parts(*compared)
    try:
        result = compare(compared[:1], compared[1:], Options())
    except ContractError as error:
        if "--allow" not in str(error):
            raise
        said = "`--allow` is of `qualeval compare`; a page shows runs under the same conditions"
        raise ContractError(f"{error}\n{said}") from None
    runs = [read_run(base), read_run(new)]
    shared = [row.part for row in result.rows]
    prompts = {name: Prompts(runs[1], name, with_prompts=with_prompts) for name in shared}
    no_prompt = {name: own.why_not for name, own in prompts.items() if own.why_not}
    titles = [(row.part, row.title) for row in result.rows]
    entries = (entry for name in shared for entry in _entries(runs, name, prompts[name]))
    data = data_of("pair", titles, PAIR_OUTCOMES, entries, sides=names, no_prompt=no_prompt)
    parts = runs[1].parts
    own = {name for name in shared if parts[name].own_list}
    kept = [name for name in shared if not_to_publish(parts[name], prompts[name])]
    values = {
        "title": f"{names[1]} against {names[0]}",
        "names": names,
        "not_to_publish": NOT_FOR_PUBLICATION if kept else "",
        "gated": [parts[n].summary.title for n in shared if parts[n].leak_policy == "gated"],
        "sides": [values_of(run) for run in runs],
        "head": compare_table.HEAD,
        "rows": [_row(place, result, own) for place in range(len(result.rows))],
        "bundle": all(run.bundle for run in runs),
        "plot": differences(result, own),
        "said": [*left_out, *compare_table.notes(result)],
        "same_except": compare_table.same_except(result),
        "footer": compare_table.footer(result),
        "setups": [facts.setup_of(run.setup) for run in runs],
    }
    warned = [f"it holds questions ({', '.join(kept)}) that must not be published"] if kept else []
    return page("pair.html.j2", data, values, warned)


def _row(place: int, result: Comparison, own: Collection[str]) -> DifferenceRow:
    row = result.rows[place]
    first, *below = compare_table.rows_of(row, result)
    return DifferenceRow(
        title=first[0],
        subtitle="; ".join(line[0].strip() for line in below),
        cells=first[1:-1],
        verdict=first[-1],
        word=row.verdict,
        own=row.part in own,
    )


def _entries(runs: list[RunRead], name: str, prompts: Prompts) -> Iterator[Entry]:
    """Each answer of the base run beside the same one of the new run."""
    base: dict[tuple[str, int], Side] = {
        key_of(told.answer.id, told.answer.repeat): side_of(told)
        for told in answers_of(runs[0], name)
    }
    for told in answers_of(runs[1], name):
        answer = told.answer
        key = key_of(answer.id, answer.repeat)
        if key not in base:
            continue
        old, new = base[key], side_of(told)
        outcome = _outcome(old.outcome == "right", new.outcome == "right")
        stratum, prompt = answer.stratum or "", prompts.of(key[0])
        yield Entry(key[0], answer.repeat, name, outcome, stratum, (old, new), prompt)


def _outcome(base_right: bool, new_right: bool) -> str:
    if base_right == new_right:
        return "both right" if base_right else "both wrong"
    return "lost" if base_right else "gained"
