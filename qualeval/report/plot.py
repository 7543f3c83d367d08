"""Shares and differences -> places on a line, in percent of its width. Pure.

A plot is drawn with percentages for all that lies along the line, so that one drawing fits a wide
screen, a telephone and paper, and its letters keep their size.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from qualeval.compare import Comparison
from qualeval.records import Summary
from qualeval.table import percent_of, points, signed


@dataclass(frozen=True, slots=True)
class Mark:
    """One row of a plot. Places are percent of the width, as text; None is not drawn."""

    title: str
    value: str
    point: str | None
    low: str | None
    high: str | None
    least: str | None = None
    most: str | None = None
    cut_from: str | None = None
    cut_width: str | None = None


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawing, row by row, so that paper can end between two. `ticks` are places and words,
    `words` says in one text what it shows.
    """

    marks: tuple[Mark, ...]
    ticks: tuple[tuple[str, str], ...]
    words: str
    zero: str | None = None

    @property
    def open_ended(self) -> bool:
        """Whether a row has bounds and no result."""
        return any(mark.most and not mark.point for mark in self.marks)


def _percent(share: float) -> str:
    return f"{min(1.0, max(0.0, share)) * 100:.2f}%"


def intervals(rows: Sequence[Summary], own: Collection[str] = ()) -> Plot:
    """The results of a run from 0 to 100 %: the interval, the result, and what is cut off. `own`
    are the parts on lists of the operator's own.
    """
    marks = [_mark(row, own) for row in rows]
    return Plot(
        marks=tuple(marks),
        ticks=tuple((f"{tick}%", f"{tick} %") for tick in (0, 25, 50, 75, 100)),
        words="; ".join(f"{mark.title}: {mark.value}" for mark in marks) + ".",
    )


def _named(title: str, *, sample: bool, own: bool) -> str:
    """A title, and whose questions these are where they are not the published ones."""
    return title + (" (sample list)" if sample else " (own list)" if own else "")


def _mark(row: Summary, own: Collection[str]) -> Mark:
    least, most = row.bounds
    title = _named(row.title, sample=row.sample_list, own=row.part in own)
    cut = row.cut_off / row.n if row.n else 0.0
    scored = row.accuracy is not None and row.ci_low is not None and row.ci_high is not None
    value = "incomplete"
    if scored:
        low, high = points(row.ci_low or 0.0), points(row.ci_high or 0.0)
        value = f"{percent_of(row.right, row.n)} % ({low} to {high})"
    if row.cut_off:
        there = "" if scored else f" of {row.answered:,} answers"
        value += f", {percent_of(row.cut_off, row.answered)} %{there} cut off"
    return Mark(
        title=title,
        value=value,
        point=_percent(row.accuracy or 0.0) if scored else None,
        low=_percent(row.ci_low or 0.0) if scored else None,
        high=_percent(row.ci_high or 0.0) if scored else None,
        least=_percent(least) if most > least else None,
        most=_percent(most) if most > least else None,
        cut_from=_percent(least) if cut else None,
        cut_width=_percent(cut) if cut else None,
    )


def differences(result: Comparison, own: Collection[str] = ()) -> Plot:
    """New minus base of each row, with its interval, around zero in the middle."""
    pairs = [(row, row.pairs[0]) for row in result.rows]
    farthest = max([0.05, *(abs(end) for _, pair in pairs for end in (pair.ci_low, pair.ci_high))])
    reach = next(step / 100 for step in (5, 10, 20, 30, 40, 50, 75, 100) if farthest <= step / 100)

    def place(difference: float) -> str:
        return _percent(0.5 + difference / (2 * reach))

    marks = []
    for row, pair in pairs:
        low, high = _signed(pair.ci_low), _signed(pair.ci_high)
        marks.append(
            Mark(
                title=_named(row.title, sample=row.sample_list, own=row.part in own),
                value=f"{_signed(pair.difference)} points ({low} to {high}): {row.verdict}",
                point=place(pair.difference),
                low=place(pair.ci_low),
                high=place(pair.ci_high),
            )
        )
    ends = (-reach, -reach / 2, 0.0, reach / 2, reach)
    return Plot(
        marks=tuple(marks),
        ticks=tuple((place(end), _tick(end)) for end in ends),
        words="; ".join(f"{mark.title}: {mark.value}" for mark in marks) + ".",
        zero=place(0.0),
    )


def _tick(share: float) -> str:
    return f"{share * 100:+g}" if share else "0"


def _signed(share: float) -> str:
    return signed(points(share))


def bars(strata: Iterable[tuple[str, int, int]]) -> list[tuple[str, str, str]]:
    """Name, `right / n`, and the share as a width, of each stratum."""
    return [
        (name, f"{right:,} / {n:,}", _percent(right / n if n else 0)) for name, right, n in strata
    ]
