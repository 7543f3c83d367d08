"""Runs -> what changed, part by part, and how sure that is. Pure: values in, a Comparison out.

The runs answered the same questions, so each question is its own control: only those that one run
got right and the other did not can speak. `lost` are right in the base run alone (b of McNemar's
table), `gained` in the new run alone (c); the difference is (gained - lost) / n.

The verdict on a part, from the 95 % interval [low, high] of the difference, Holm's p over all
parts of the command, and a margin of M points (`--gate`, else the cards', else 5):

    worse               high < 0 and p < .05
    better              low > 0 and p < .05
    same within M       neither, and -M < low, high < M
    can't tell          otherwise

The gate decides in this order, and passes nothing by default:

    regression          high < -M
    pass                low > -M; said as "worse, within M" when high < 0
    regression          high < 0 and p < .05
    inconclusive        otherwise

With several runs a side every run of one is compared with every run of the other, and nothing is
merged: a word is given only when all pairs say it, and better, worse or regression only when the
runs of one side lie closer together than the smallest change between the sides.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from qualeval import stats
from qualeval.comparable import ComparedRun, Difference, PartOfRun, check_comparable
from qualeval.errors import ContractError, OptionError
from qualeval.measured import Measured, Score, exact_difference, measure
from qualeval.records import Record

DEFAULT_MARGIN = 5.0
"""Points within which two scores are called the same when neither option nor card names any: what
a part of a few hundred questions can prove."""

ALPHA = 0.05

Verdict = Literal["better", "worse", "same", "can't tell"]
GateWord = Literal["pass", "worse, within M", "regression", "inconclusive"]

EXIT_CODES: Mapping[GateWord, int] = {
    "pass": 0,
    "worse, within M": 0,
    "regression": 1,
    "inconclusive": 3,
}


@dataclass(frozen=True, slots=True)
class Options:
    """What the command says beyond the runs; `gate` is a margin in points."""

    allow: tuple[str, ...] = ()
    unpaired: bool = False
    gate: float | None = None


class Pair(Measured):
    """A measured pair with p adjusted for all parts, and what that makes of it."""

    p_holm: float
    verdict: Verdict
    gate: GateWord | None


class Spread(Record):
    """The scores of the runs of one side: lowest, highest, and how many runs."""

    runs: int
    low: float
    high: float


class Row(Record):
    """One part of one side against another; more than one pair when a side has several runs."""

    part: str
    title: str
    subtitle: str
    sample_list: bool
    pairs: tuple[Pair, ...]
    base_spread: Spread
    new_spread: Spread
    verdict: Verdict
    gate: GateWord | None
    notes: tuple[str, ...]


class Comparison(Record):
    """All that `qualeval compare` has to say; no number is taken over several parts.

    The first `bases` of `runs` are the base side. `margin` is in points. `allowed`, `same_except`
    hold the values of each run, in the order of `runs`; `gate` is None where none was asked for.
    """

    suite: str
    runs: tuple[str, ...]
    labels: tuple[str, ...]
    models: tuple[str, ...]
    bases: int
    paired: bool
    margin: float
    margin_source: str
    rows: tuple[Row, ...]
    allowed: tuple[Difference, ...]
    same_except: tuple[Difference, ...]
    not_known: tuple[str, ...]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]
    gate: GateWord | None

    @property
    def exit_code(self) -> int:
        """0 pass, 1 regression, 3 inconclusive; 0 where no gate was asked for."""
        return EXIT_CODES[self.gate] if self.gate else 0


def compare(
    base: Sequence[ComparedRun], new: Sequence[ComparedRun], options: Options
) -> Comparison:
    """Compare new runs with base runs, part by part.

    One base run: each new run against it. Several: the new runs together against them, as runs of
    one side. Raises ContractError when they cannot be compared (a field that must be the same, a
    part that is incomplete or has no questions, other questions, counts alone where pairs are
    asked for) and OptionError for an option that makes no sense.
    """
    runs = [*base, *new]
    _check(runs, options)
    found = check_comparable(runs, options.allow)
    sides = [new] if len(base) > 1 else [[run] for run in new]
    drafts = [
        (name, [measure(b, n, name, unpaired=options.unpaired) for b in base for n in side])
        for name in found.parts
        for side in sides
    ]
    margin, source, notes = _margin(runs, options.gate)
    judged = _judged(drafts, margin, gated=options.gate is not None)
    rows = [_row(base[0].parts[name], pairs, margin) for name, pairs in judged]
    return Comparison(
        suite=str(base[0].parts[found.parts[0]].conditions.get("suite")),
        runs=tuple(run.name for run in runs),
        labels=tuple(run.label for run in runs),
        models=tuple(run.model for run in runs),
        bases=len(base),
        paired=not options.unpaired,
        margin=margin,
        margin_source=source,
        rows=tuple(rows),
        allowed=tuple(found.allowed),
        same_except=tuple(found.same_except),
        not_known=tuple(found.not_known),
        left_out=tuple(found.left_out),
        notes=tuple(notes),
        gate=_all_together([row.gate for row in rows if row.gate]),
    )


def _check(runs: Sequence[ComparedRun], options: Options) -> None:
    if options.gate is not None and not 0 < options.gate < 100:
        raise OptionError(f"--gate: must be more than 0 and less than 100 points: {options.gate}")
    for run in runs:
        for part in run.parts.values():
            if part.incomplete is not None or part.n < 1:
                why = part.incomplete or "it has no questions"
                raise ContractError(
                    f"{run.name}: part '{part.name}' is incomplete ({why}): there is no score to "
                    "compare. Finish the run, or compare other parts by naming their files "
                    "<part>.summary.json in place of the folders"
                )


def _margin(runs: Sequence[ComparedRun], gate: float | None) -> tuple[float, str, list[str]]:
    """Points that count as the same, where they come from, and what must be said of that."""
    own = [run.margin_points for run in runs if run.margin_points is not None]
    of_cards = min(own, default=None)
    if gate is not None:
        notes = []
        if of_cards is not None and of_cards != gate:
            notes.append(f"this gate is {gate:g} points; the card set {of_cards:g} before the run")
        return gate, "--gate", notes
    if of_cards is None:
        return DEFAULT_MARGIN, "default", []
    return of_cards, "gate.margin_points of the card", []


# Words


def verdict_of(low: float, high: float, p_holm: float, margin: float) -> Verdict:
    """The verdict as the module's docstring defines it; `margin` in points, the rest shares."""
    if p_holm < ALPHA and high < 0:
        return "worse"
    if p_holm < ALPHA and low > 0:
        return "better"
    return "same" if -margin / 100 < low and high < margin / 100 else "can't tell"


def gate_of(low: float, high: float, p_holm: float, margin: float) -> GateWord:
    """The gate's word in the order of the module's docstring."""
    if high < -margin / 100:
        return "regression"
    if low > -margin / 100:
        return "worse, within M" if high < 0 else "pass"
    return "regression" if high < 0 and p_holm < ALPHA else "inconclusive"


def _judged(
    drafts: Sequence[tuple[str, Sequence[Measured]]], margin: float, *, gated: bool
) -> list[tuple[str, list[Pair]]]:
    """Drafts with p adjusted and a word. Holm runs over everything a reader could pick from, but
    not over the pairs of one row, which must all agree.
    """
    judged: list[tuple[str, list[Pair]]] = [(name, []) for name, _ in drafts]
    for place in range(len(drafts[0][1])):
        adjusted = stats.holm([pairs[place].p for _, pairs in drafts])
        for (_, pairs), (_, done), p in zip(drafts, judged, adjusted, strict=True):
            pair = pairs[place]
            words = {
                "p_holm": p,
                "verdict": verdict_of(pair.ci_low, pair.ci_high, p, margin),
                "gate": gate_of(pair.ci_low, pair.ci_high, p, margin) if gated else None,
            }
            done.append(Pair.model_validate(dict(pair) | words))
    return judged


def _row(part: PartOfRun, pairs: Sequence[Pair], margin: float) -> Row:
    base, new = _scores([pair.base for pair in pairs]), _scores([pair.new for pair in pairs])
    verdicts = {pair.verdict for pair in pairs}
    verdict: Verdict = pairs[0].verdict if len(verdicts) == 1 else "can't tell"
    gate = _all_agree([pair.gate for pair in pairs if pair.gate])
    notes = []
    if _spread_reaches_change(pairs, base, new):
        verdict = verdict if verdict == "same" else "can't tell"
        gate = "inconclusive" if gate == "regression" else gate
        notes.append("runs of one side lie as far apart as the two sides do")
    if verdict == "worse" and all(map(_all_lost_were_cut_off, pairs)):
        notes.append("every lost answer was cut off: an effect of the limit")
    if gate == "inconclusive":
        notes += _too_little(pairs, margin)
    return Row(
        part=part.name,
        title=part.title,
        subtitle=part.subtitle,
        sample_list=part.sample_list,
        pairs=tuple(pairs),
        base_spread=_spread(base),
        new_spread=_spread(new),
        verdict=verdict,
        gate=gate,
        notes=tuple(notes),
    )


def _scores(scores: Sequence[Score]) -> list[Fraction]:
    """The scores of one side, one a run."""
    return list({score.run: Fraction(score.right, score.n) for score in scores}.values())


def _spread(scores: Sequence[Fraction]) -> Spread:
    return Spread(runs=len(scores), low=float(min(scores)), high=float(max(scores)))


def _spread_reaches_change(
    pairs: Sequence[Pair], base: Sequence[Fraction], new: Sequence[Fraction]
) -> bool:
    """Whether two runs of one side are as far apart as the sides, or on both sides of the other."""
    if len(pairs) == 1:
        return False
    changes = [exact_difference(pair.base, pair.new) for pair in pairs]
    one_way = min(changes) > 0 or max(changes) < 0
    widest = max(max(side) - min(side) for side in (base, new))
    return not one_way or widest >= min(map(abs, changes))


def _all_lost_were_cut_off(pair: Pair) -> bool:
    lost = [flip for flip in pair.flips if flip.new_right < flip.base_right]
    return bool(lost) and all(set(flip.new_causes) == {"cut off"} for flip in lost)


def _too_little(pairs: Sequence[Pair], margin: float) -> Iterator[str]:
    """That these questions are too few for this gate, and how many would do, where they are."""
    widest = max(pairs, key=lambda pair: pair.smallest_margin)
    n, provable, wanted = widest.questions, widest.smallest_margin, margin / 100
    square = stats.Z**2
    if provable > wanted:
        enough = square * (1 / wanted - 1)
        if provable > square / (n + square):  # what differs sets the limit, not the number alone
            enough = max(enough, n * (provable / wanted) ** 2)
        least = stats.half_up(Fraction(provable) * 100, 1)
        yield (
            f"not enough data for this gate: {n:,} questions can prove a margin of {least} points, "
            f"not {margin:g}; about {math.ceil(enough):,} could"
        )


def _all_agree(words: Sequence[GateWord]) -> GateWord | None:
    """The word of several pairs of one part; None for none."""
    return _all_together(words) if len(set(words)) == 1 or _all_pass(words) else "inconclusive"


def _all_pass(words: Sequence[GateWord]) -> bool:
    return all(EXIT_CODES[word] == 0 for word in words)


def _all_together(words: Sequence[GateWord]) -> GateWord | None:
    """The word of several parts, all of which must pass; None for none."""
    order: tuple[GateWord, ...] = ("regression", "inconclusive", "worse, within M", "pass")
    return next((word for word in order if word in words), None)
