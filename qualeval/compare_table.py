"""A comparison -> the text a person reads or pastes, as aligned text, Markdown or JSON. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from qualeval import stats
from qualeval.comparable import Difference, shown
from qualeval.compare import Comparison, Pair, Row, Spread, Verdict
from qualeval.measured import Flip, exact_difference
from qualeval.records import NOT_COMPARABLE, count_words
from qualeval.table import aligned, cells_of, escaped, points, signed

MOST_FLIPS = 20
"""Ids listed for each way in which answers flipped; the rest is counted, and in the JSON."""

HEAD = (
    ("", "base", "new", "points", "95 % interval", "b : c", "p (Holm)")
    + ("cut off (p)", "would show", "verdict")
)  # fmt: skip
Cells = tuple[str, ...]


def in_format(result: Comparison, format: str) -> str:
    """The comparison as `table`, `md` or `json`."""
    if format == "json":
        return result.model_dump_json(indent=2)
    return markdown(result) if format == "md" else text(result)


def text(result: Comparison) -> str:
    """The whole comparison as aligned text."""
    body = [HEAD, *(cells for row in result.rows for cells in rows_of(row, result))]
    flips = [line for row in result.rows for line in _flip_lines(row)]
    blocks = [
        _head(result),
        aligned(body),
        notes(result),
        flips,
        same_except(result),
        footer(result),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def markdown(result: Comparison) -> str:
    """The same as Markdown, flips folded away."""
    head = ("part", *HEAD[1:])
    lines = [cells_of(head), cells_of(["---"] + ["---:"] * (len(head) - 1))]
    for row in result.rows:
        for cells in rows_of(row, result):
            filled = [*cells, *[""] * (len(head) - len(cells))]
            lines.append(cells_of(map(escaped, filled)))
    flips = [escaped(line) for row in result.rows for line in _flip_lines(row)]
    folded = ["<details><summary>Flips</summary>", "", *_bullets(flips), "", "</details>"]
    said = [*notes(result), *same_except(result), *footer(result)]
    blocks = [
        _bullets(map(escaped, _head(result))),
        lines,
        folded if flips else [],
        _bullets(map(escaped, said)),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


# What stands above and below the table


def _head(result: Comparison) -> list[str]:
    lines = []
    for place, run in enumerate(result.runs):
        side = "base" if place < result.bases else "new"
        lines.append(
            f"{side:<5} {_plain(run)}: {_plain(result.labels[place])} · "
            f"{_plain(result.models[place])}"
        )
    if not result.paired:
        lines.append(
            "UNPAIRED: two scores by their counts alone; the same questions could be paired, and "
            "would show a change half as large"
        )
    return lines


def notes(result: Comparison) -> list[str]:
    """The verdict of the gate, and what has to be known to read the table."""
    lines = []
    if result.gate is not None:
        word = result.gate.replace("within M", f"within {result.margin:g} points")
        word = "pass: " + word if word.startswith("worse") else word
        lines.append(f"Gate, no part worse by {result.margin:g} points: {word.upper()}.")
        for row in result.rows:
            least = max(pair.smallest_margin for pair in row.pairs)
            said = (row.gate or "").replace("within M", f"within {result.margin:g} points")
            lines.append(
                f"  {_row_name(row, result)}: {said}; the smallest margin that these "
                f"{row.pairs[0].questions:,} questions can prove is {points(least)} points"
            )
    for row in result.rows:
        lines += [f"Note, {_row_name(row, result)}: {note}." for note in row.notes]
    lines += [f"Note: {note}." for note in result.notes]
    if result.left_out:
        lines.append(f"Left out, not in every run: {', '.join(result.left_out)}.")
    return lines


def same_except(result: Comparison) -> list[str]:
    """What differs between the runs besides what was compared."""
    lines = []
    if result.allowed:
        lines.append("ALLOWED TO DIFFER, so the scores answer different questions:")
        lines += [_difference(difference, result) for difference in result.allowed]
    if result.not_known:
        lines.append(f"Not known to be the same: {', '.join(result.not_known)}.")
    if not result.same_except:
        return [*lines, "Same except: nothing that is known."]
    lines.append("Same except:")
    return [*lines, *(_difference(difference, result) for difference in result.same_except)]


def _difference(difference: Difference, result: Comparison) -> str:
    named = {row.part for row in result.rows}
    some = difference.parts and named - set(difference.parts)
    where = f" ({', '.join(difference.parts)})" if some else ""
    values = " -> ".join(_plain(shown(value)) for value in difference.values)
    return f"  {difference.field}{where}: {values}"


def footer(result: Comparison) -> list[str]:
    """How the numbers were made."""
    source = result.margin_source
    if source == "default":
        source = "the default; --gate or gate.margin_points of the card set another"
    lines = [
        f"{result.suite}, {NOT_COMPARABLE}. A cut-off answer counts as wrong.",
        f"points: new minus base. same: within {result.margin:g} points ({source}).",
        "would show: the smallest true change that four of five such comparisons would show; a "
        "smaller one may be there, unseen.",
    ]
    methods = ", ".join(dict.fromkeys(p.ci_method for row in result.rows for p in row.pairs))
    if result.paired:
        lines.append(
            "b : c: questions that the base run, the new run alone answered better. p: McNemar's "
            "mid-p, with repeats a test of the questions' means; Holm: adjusted for all rows."
        )
    else:
        lines.append("p: Fisher's exact test; Holm: adjusted for all rows.")
    lines.append(f"Intervals are for each row alone ({methods}); p of cut-offs is not adjusted.")
    if any(row.sample_list for row in result.rows):
        lines.append("SAMPLE LIST: a few questions of our own; not a benchmark result.")
    return lines


# The table


def rows_of(row: Row, result: Comparison) -> Iterator[Cells]:
    """Lines of one row: its figures under its name, or one line a pair under its name."""
    if len(result.runs) == 2:
        yield (_title(row), *_figures(row.pairs[0], row.verdict, result.margin))
        yield (f"  {_plain(row.subtitle)}",)
    elif len(row.pairs) == 1:
        if row.pairs[0].new.run == result.runs[1]:
            yield (f"{_title(row)}: {_plain(row.subtitle)}",)
        label = f"  {_plain(row.pairs[0].new.run)}"
        yield (label, *_figures(row.pairs[0], row.verdict, result.margin))
    else:
        verdict = _verdict(row.verdict, result.margin)
        yield (_title(row), *[""] * (len(HEAD) - 2), verdict)
        yield (f"  {_plain(row.subtitle)}",)
        for pair in row.pairs:
            label = f"  {_plain(pair.base.run)} -> {_plain(pair.new.run)}"
            yield (label, *_figures(pair, pair.verdict, result.margin))
        yield (
            f"  spread: base {_spread(row.base_spread)}; new {_spread(row.new_spread)}; "
            "no runs are merged",
        )
    if len(result.runs) == 2:
        for line in _beside(row.pairs[0]):
            yield (line,)


def _figures(pair: Pair, verdict: Verdict, margin: float) -> Cells:
    difference = stats.half_up(100 * exact_difference(pair.base, pair.new), 1)
    split = f"{pair.lost} : {pair.gained}" if pair.lost is not None else "-"
    return (
        _score(pair.base.right, pair.base.n),
        _score(pair.new.right, pair.new.n),
        signed(difference),
        f"{signed(points(pair.ci_low))} to {signed(points(pair.ci_high))}",
        split,
        f"{_p(pair.p)} ({_p(pair.p_holm)})",
        f"{pair.base.cut_off} -> {pair.new.cut_off} ({_p(pair.cut_p)})",
        _would_show(pair),
        _verdict(verdict, margin),
    )


def _score(right: int, n: int) -> str:
    return f"{stats.percent(right, n)} % {right}/{n}"


def _would_show(pair: Pair) -> str:
    """The smallest change that would show. With hardly a question that differs there is no such
    figure, but five of them, all one way, are the fewest that any test calls a change.
    """
    if pair.smallest_shown is not None:
        return f"{points(pair.smallest_shown)} pts"
    return f"> {points(5 / pair.questions)} pts" if pair.questions > 5 else "nothing"


def _beside(pair: Pair) -> Iterator[str]:
    both = [name for name in pair.base.beside if name in pair.new.beside]
    shared = [name for name in both if ": " not in name]  # counts of a group say too much here
    if shared:
        figures = (
            f"{name} {stats.percent(b.right, b.n)} % -> {stats.percent(n.right, n.n)} %"
            for name in shared
            for b, n in [(pair.base.beside[name], pair.new.beside[name])]
        )
        yield f"  beside it, not tested: {', '.join(figures)}"


def _spread(spread: Spread) -> str:
    low, high = points(spread.low), points(spread.high)
    if spread.runs == 1:
        return f"{low} % (one run)"
    apart = points(spread.high - spread.low)
    return f"{low} to {high} % ({spread.runs} runs, {apart} pts apart)"


def _verdict(verdict: Verdict, margin: float) -> str:
    return f"same within {margin:g} pts" if verdict == "same" else verdict


# Flips


def _flip_lines(row: Row) -> Iterator[str]:
    for pair in row.pairs:
        lost = [flip for flip in pair.flips if flip.new_right < flip.base_right]
        gained = [flip for flip in pair.flips if flip.new_right > flip.base_right]
        sides = f"{_plain(pair.base.run)} -> {_plain(pair.new.run)}"
        for word, flips in (("lost", lost), ("gained", gained)):
            if flips:
                why = _causes(word, flips)
                yield f"{_title(row)}, {sides}: {word} {len(flips):,} ({why})"
                yield from _by_way(flips)


def _by_way(flips: Sequence[Flip]) -> Iterator[str]:
    """One line for each way in which answers flipped, with the ids of its questions."""
    ids: dict[str, list[str]] = {}
    for flip in flips:
        base = _answer(flip.base_right, flip.base_answers, flip.base_causes)
        new = _answer(flip.new_right, flip.new_answers, flip.new_causes)
        ids.setdefault(f"{base} -> {new}", []).append(_plain(str(flip.id)))
    for way, names in ids.items():
        more = len(names) - MOST_FLIPS
        rest = f" and {more:,} more (--format json has all)" if more > 0 else ""
        yield f"  {way}: {', '.join(names[:MOST_FLIPS])}{rest}"


def _causes(word: str, flips: Sequence[Flip]) -> str:
    """Why the worse side is not right, summed over flips."""
    sides = (flip.new_causes if word == "lost" else flip.base_causes for flip in flips)
    causes = [cause for side in sides for cause, times in side.items() for _ in range(times)]
    return ", ".join(f"{times} {cause}" for cause, times in count_words(causes).items())


def _answer(right: int, answers: int, causes: dict[str, int]) -> str:
    if answers == 1:
        return next(iter(causes), "right")
    why = ", ".join(f"{times} {cause}" for cause, times in causes.items())
    return f"{right} of {answers} right" + (f" ({why})" if why else "")


# Cells


def _row_name(row: Row, result: Comparison) -> str:
    name = _title(row)
    several = len(result.runs) > 2 and len(row.pairs) == 1
    return f"{name}, {_plain(row.pairs[0].new.run)}" if several else name


def _title(row: Row) -> str:
    return _plain(row.title) + (" (sample list)" if row.sample_list else "")


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else stats.half_up(Fraction(value), 3)


def _plain(text: str) -> str:
    """A text of the user's on one line, without what a terminal would obey."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _bullets(lines: Iterable[str]) -> list[str]:
    return [f"  - {line.strip()}" if line.startswith("  ") else f"- {line}" for line in lines]
