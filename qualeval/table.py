"""Summaries -> the table a person would paste into a page, as aligned text or Markdown. Pure."""

import unicodedata
from collections.abc import Iterable, Sequence
from fractions import Fraction

from qualeval.records import NOT_COMPARABLE, RunSummary, Summary
from qualeval.stats import half_up

Row = tuple[str, ...]

HEAD: Row = ("", "result, 95 % margin", "right", "cut off", "low to high", "errors")

METHODS = {
    "wilson": "Wilson's",
    "t-clustered": "a t interval over questions",
    "bootstrap-percentile": "a bootstrap over questions",
}
"""How `ci_method` is named under a table."""


def points(share: float, places: int = 1) -> str:
    """A share as points with so many decimals, half rounded up."""
    return half_up(Fraction(share) * 100, places)


def signed(number: str) -> str:
    """A number as it is printed, with a plus where it is above zero."""
    return number if number.startswith("-") or not float(number) else f"+{number}"


def percent_of(right: int, n: int) -> str:
    """right / n in percent with one decimal, half rounded up from the integers."""
    return half_up(Fraction(100 * right, n), 1)


def rows(summary: Summary) -> list[Row]:
    """The lines of one part: row, subtitle, figures beside the score, and effort of thinking."""
    if summary.rows:
        return [line for row in summary.rows for line in rows(row)]
    title = summary.title + (" (sample list)" if summary.sample_list else "")
    lines = [(title, *_figures(summary)), (f"  {_subtitle(summary)}",)]
    if summary.accuracy is not None:
        lines += [(f"  {line}",) for line in beside_lines(summary)]
    if summary.cut_off and (said := _cut_off_words(summary)):
        lines.append((f"  {said}",))
    if summary.thinking == "on":
        lines.append((f"  {_effort(summary)}",))
    return lines


def beside_lines(summary: Summary) -> list[str]:
    """The figures beside a score: shares, and for names like `vt: all named` counts by group."""
    shares: list[str] = []
    groups: dict[str, list[str]] = {}
    for name, count in summary.beside.items():
        group, _, what = name.partition(": ")
        if not what:
            shares.append(f"{name} {percent_of(count.right, count.n)} %")
        elif count.right:
            groups.setdefault(group, []).append(f"{count.right} {what}")
    by_group = [f"{group} {', '.join(counts)}" for group, counts in groups.items()]
    return [f"beside it: {', '.join(shares)}"] * bool(shares) + (
        [f"of them: {'; '.join(by_group)}"] if by_group else []
    )


def _figures(summary: Summary) -> Row:
    counts = f"{summary.right} / {summary.n}"
    cut, errors = str(summary.cut_off), str(summary.errors)
    if summary.accuracy is None or summary.margin is None:
        why = f"incomplete ({summary.incomplete_because})"
        at_most = round(summary.bounds[1] * summary.n)
        bounds = f"{summary.right}/{summary.n} to {at_most}/{summary.n}"
        return (why, f"{summary.answered} of {summary.n} answered", cut, bounds, errors)
    low, high = points(summary.ci_low or 0.0), points(summary.ci_high or 0.0)
    result = f"{percent_of(summary.right, summary.n)} % ± {points(summary.margin)} pts"
    return (result, counts, cut, f"{low} to {high}", errors)


def _subtitle(summary: Summary) -> str:
    marks = [summary.subtitle]
    if summary.limits:
        marks.append("not the published limits: " + ", ".join(summary.limits))
    if summary.repeats > 1:
        marks.append(f"{summary.repeats} answers a question")
    return "; ".join(marks)


def _cut_off_words(summary: Summary) -> str:
    """What the cut-off answers mean for a row: their share, the finished ones alone, the bounds."""
    rate, finished = summary.cut_off_rate, summary.among_finished
    if rate is None or finished is None:
        return ""
    share = percent_of(summary.cut_off, summary.answered)
    said = [f"cut off {share} % ({points(rate.ci_low)} to {points(rate.ci_high)})"]
    if finished.ci_low is not None and finished.ci_high is not None:
        said.append(
            f"{finished.label}: {percent_of(finished.right, finished.n)} % "
            f"({points(finished.ci_low)} to {points(finished.ci_high)})"
        )
    low, high = (points(bound) for bound in summary.bounds)
    return "; ".join([*said, f"bounds {low} to {high} %"])


def _effort(summary: Summary) -> str:
    """Median tokens, and seconds per question with a note when other work ran beside it."""
    said = []
    if summary.median_completion_tokens is not None:
        said.append(f"median {thousands(summary.median_completion_tokens)} tokens")
    if summary.median_seconds is not None:
        load = "" if summary.alone else " (mixed load)"
        said.append(f"{tenths(summary.median_seconds)} s per question{load}")
    return ", ".join(said) or "tokens and seconds not known"


def tenths(value: float) -> str:
    """With one decimal, half up as it is printed: 4.25 gives 4.3."""
    return half_up(Fraction(str(value)), 1)


def thousands(value: float) -> str:
    """A whole number with thousands marked; 2182.5 gives 2,183."""
    return f"{int(half_up(Fraction(value), 0)):,}"


def footer(parts: Sequence[Summary]) -> list[str]:
    """What must stand under every table."""
    modes = {part.thinking for part in parts}
    thinking = "off and on as each row says" if len(modes) == 2 else next(iter(modes), "off")
    seeds = ", ".join(dict.fromkeys(str(part.seed) for part in parts))
    sources = dict.fromkeys(part.sampling_source or "source not stated" for part in parts)
    caches = dict.fromkeys(part.prompt_cache.removeprefix("prompt cache ") for part in parts)
    dates = sorted({part.started[:10] for part in parts if part.started})
    lines = [
        f"Thinking {thinking}; seed {seeds}; sampling: {'; '.join(sources)}. "
        "A cut-off answer counts as wrong.",
        f"{'; '.join(dict.fromkeys(p.suite for p in parts))}, {NOT_COMPARABLE}. "
        f"{' to '.join(dict.fromkeys([*dates[:1], *dates[-1:]]))}",
        f"Prompt cache {'; '.join(caches)}. {_cache_words(parts)}",
        f"Low to high is the 95 % interval, {_methods(parts)}; ± is half its width and is not "
        "centred on the result.",
    ]
    if held_by := dict.fromkeys(part.sandbox for part in parts if part.sandbox):
        lines.append(f"Programs of the model ran in: {'; '.join(held_by)}.")
    if any(part.sample_list for part in parts):
        lines.append(
            "SAMPLE LIST: a few questions of our own that show how things work; "
            "not a benchmark result."
        )
    return lines


def _methods(parts: Sequence[Summary]) -> str:
    used = dict.fromkeys(part.ci_method or "wilson" for part in parts)
    return " or ".join(METHODS.get(method, method) for method in used)


def _cache_words(parts: Sequence[Summary]) -> str:
    """The cache check in words; 0 is never printed for "not reported"."""
    said = {part.title: part.cache_check for part in parts if part.answered}
    states = {check.state for check in said.values()}
    if not states:
        return "No answer yet to check it by."
    if states == {"none cached"}:
        return "Checked: no cached tokens."
    if states <= {"not reported by this server"}:
        return "Cached tokens: not reported by this server."
    return "Cached tokens: " + "; ".join(
        f"{title}: {check.cached_tokens} in {check.answers_with_cached_tokens} answers"
        if check.state == "cached tokens seen"
        else f"{title}: {check.state}"
        for title, check in said.items()
    )


def totals(run: RunSummary) -> str | None:
    """The cut-off answers over all parts with thinking off, when there is more than one."""
    total = run.totals_thinking_off
    off = [part for part in run.parts.values() if part.thinking == "off"]
    if len(off) < 2 or not total.requests:
        return None
    share = percent_of(total.cut_off, total.requests)
    return (
        f"Cut off over all parts with thinking off: {total.cut_off:,} of {total.requests:,} "
        f"= {share} %"
    )


def notes(run: RunSummary) -> list[str]:
    """Server starts, and what the numbers demand to be said, by part."""
    said = [f"All parts on one server start: {run.one_server_start}."]
    if line := totals(run):
        said.insert(0, line + ".")
    for part in run.parts.values():
        if part.release is not None:
            said.append(f"List, {part.title}: {newest_of(part)}.")
        said += [f"Note, {part.title}: {warning}." for warning in part.warnings]
        if part.error_kinds:
            kinds = ", ".join(f"{n} x {kind}" for kind, n in part.error_kinds.items())
            said.append(f"Errors, {part.title}: {kinds}; see {part.part}.errors.jsonl.")
    return said


def newest_of(part: Summary) -> str:
    """What the newest rows are of, and their dates: the same name is another list a year later."""
    dates = " to ".join(date[:10] for date in part.dates or ())
    return f"the newest of {part.release}" + (f", {dates}" if dates else "")


def text_table(run: RunSummary) -> str:
    """The whole table as aligned text."""
    parts = list(run.parts.values())
    if not parts:
        return "no part has been run yet"
    body = [HEAD, *(row for part in parts for row in rows(part))]
    model = f"{run.label} · {parts[0].model}"
    return "\n".join([model, "", *aligned(body), "", *notes(run), *footer(parts)])


def markdown_table(run: RunSummary) -> str:
    """The same as Markdown."""
    parts = list(run.parts.values())
    head = ("row", *HEAD[1:])
    lines = [cells_of(head), cells_of(["---"] + ["---:"] * (len(head) - 1))]
    for part in parts:
        first, *below = rows(part)
        under = "".join(f"<br>{escaped(line[0].strip())}" for line in below)
        lines.append(cells_of([f"**{escaped(first[0])}**{under}", *map(escaped, first[1:])]))
    said = [*notes(run), *footer(parts)]
    title = f"## {escaped(run.label)}" + "".join(f" · {escaped(p.model)}" for p in parts[:1])
    return "\n".join([title, "", *lines, "", *(f"- {escaped(line)}" for line in said), ""])


def cells_of(cells: Iterable[str]) -> str:
    """A row of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def escaped(text: str) -> str:
    """A text that does nothing in a Markdown table but show."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def aligned(body: Sequence[Row]) -> list[str]:
    """Rows in columns as wide as their widest cell, the first at its left edge and all others at
    their right one. A row of one cell is a line of its own and widens no column.
    """
    wide = [row for row in body if len(row) > 1]
    widths = [max(map(width_of, column)) for column in zip(*wide, strict=True)]
    lines = []
    for first, *others in body:
        cells = [first + " " * (widths[0] - width_of(first))]
        for cell, width in zip(others, widths[1:], strict=False):
            cells.append(" " * (width - width_of(cell)) + cell)
        lines.append("   ".join(cells).rstrip())
    return lines


def width_of(text: str) -> int:
    """Columns that a text takes on a terminal."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
