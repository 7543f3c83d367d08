"""One run against another on one part: the difference, how sure it is, what flipped. Pure.

Paired, question by question: `lost` were right in the base run alone (b of McNemar's table),
`gained` in the new run alone (c). Unpaired, from counts alone, is what is left when answers are not
at hand, and sees half as much.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Literal

from qualeval import stats
from qualeval.comparable import ComparedRun, Outcome, PartOfRun, Question
from qualeval.errors import ContractError
from qualeval.records import Count, ItemId, Record, count_words

CAUSES = {
    "misrouted": "misrouted",
    "no_letter": "no letter",
    "empty": "empty",
    "refusal": "refusal",
    "several_letters": "several letters",
    "out_of_range": "letter out of range",
    "wrong_answer": "wrong answer",
    "time_limit": "time limit",
    "memory_limit": "memory limit",
    "output_limit": "output limit",
    "runtime_error": "runtime error",
    "compile_error": "compile error",
    "no_code": "no code",
}
"""Rules of the graders that say why there is no answer; any other rule of a wrong one: wrong."""


class Score(Record):
    """What one run scored on a part, and the figures beside that."""

    run: str
    right: int
    n: int
    accuracy: float
    cut_off: int
    beside: dict[str, Count]


class Flip(Record):
    """A question that one run answered better: right answers in each, and why the rest are not."""

    id: ItemId
    base_right: int
    new_right: int
    base_answers: int
    new_answers: int
    base_causes: dict[str, int]
    new_causes: dict[str, int]


class Measured(Record):
    """One run against another on one part. Shares from 0 to 1, differences from -1 to 1.

    `p` is McNemar's mid-p; with repeats a test of the questions' mean differences; Fisher's exact
    test when unpaired. `discordant` is the mean squared difference of a question: without repeats
    the share of questions that changed sides. `cut_p` tests the cut-off flag likewise, unadjusted.
    `smallest_shown` is the true difference that four of five such comparisons would show, None
    where even all that differs is too little; `smallest_margin` the gate they would pass if nothing
    had changed.
    """

    base: Score
    new: Score
    questions: int
    difference: float
    ci_low: float
    ci_high: float
    ci_method: str
    p: float
    p_exact: float | None = None
    discordant: float | None = None
    lost: int | None = None
    gained: int | None = None
    cut_lost: int | None = None
    cut_gained: int | None = None
    cut_p: float
    smallest_shown: float | None
    smallest_margin: float
    flips: tuple[Flip, ...] = ()


def measure(
    base_run: ComparedRun, new_run: ComparedRun, name: str, *, unpaired: bool = False
) -> Measured:
    """Two runs on the part `name`. Raises ContractError when questions cannot be paired."""
    base, new = base_run.parts[name], new_run.parts[name]
    scores = _score(base_run.name, base), _score(new_run.name, new)
    if unpaired:
        return _unpaired(*scores, base, new)
    for run, part in ((base_run, base), (new_run, new)):
        if part.questions is None:
            raise ContractError(
                f"{run.name}: part '{name}': only its counts are known, not its answers, and "
                "questions cannot be paired; --unpaired compares the scores alone"
            )
    assert base.questions is not None
    assert new.questions is not None
    others = base.questions.keys() ^ new.questions.keys()
    if others:
        raise ContractError(
            f"{base_run.name}, {new_run.name}: part '{name}': questions in one run only: "
            f"{len(others)}, the first is '{min(others)}'; --unpaired compares the scores alone"
        )
    # Seeded draws go by place: in the order of ids, whichever run comes first.
    pairs = [(base.questions[id], new.questions[id]) for id in sorted(base.questions)]
    place = {id: number for number, id in enumerate(base.questions)}
    found = _paired(*scores, pairs)
    flips = sorted(found.flips, key=lambda flip: place[str(flip.id)])
    return found.model_copy(update={"flips": tuple(flips)})


def _score(run: str, part: PartOfRun) -> Score:
    share = part.right / part.n
    beside = dict(part.beside)
    return Score(
        run=run, right=part.right, n=part.n, accuracy=share, cut_off=part.cut_off, beside=beside
    )


def _paired(base: Score, new: Score, questions: Sequence[tuple[Question, Question]]) -> Measured:
    """The difference of two runs over the same questions."""
    gaps = _gaps(questions, "right")
    cuts = _gaps(questions, "cut_off")
    lost, gained = sum(gap < 0 for gap in gaps), sum(gap > 0 for gap in gaps)
    cut_lost, cut_gained = sum(gap < 0 for gap in cuts), sum(gap > 0 for gap in cuts)
    once = all(len(b.outcomes) == len(n.outcomes) == 1 for b, n in questions)
    if once:
        both = base.right - lost
        interval = stats.tango(both, lost, gained, len(gaps) - both - lost - gained)
        p, cut_p = stats.mcnemar_midp(lost, gained), stats.mcnemar_midp(cut_lost, cut_gained)
    else:
        interval = mean_interval(gaps)
        p, cut_p = mean_test(gaps), mean_test(cuts)
    discordant = math.fsum(gap * gap for gap in gaps) / len(gaps)
    return Measured(
        base=base,
        new=new,
        questions=len(gaps),
        difference=float(exact_difference(base, new)),
        ci_low=interval.low,
        ci_high=interval.high,
        ci_method=interval.method,
        p=p,
        p_exact=stats.mcnemar_exact(lost, gained) if once else None,
        discordant=discordant,
        lost=lost,
        gained=gained,
        cut_lost=cut_lost,
        cut_gained=cut_gained,
        cut_p=cut_p,
        smallest_shown=stats.mde_paired(len(gaps), discordant),
        smallest_margin=stats.smallest_gate_margin(len(gaps), discordant),
        flips=tuple(_flip(*pair) for pair, gap in zip(questions, gaps, strict=True) if gap),
    )


def _gaps(
    questions: Iterable[tuple[Question, Question]], flag: Literal["right", "cut_off"]
) -> list[float]:
    """New minus base share of one flag, for each question; rounded once."""
    gaps = []
    for base, new in questions:
        k_base = sum(getattr(outcome, flag) for outcome in base.outcomes)
        k_new = sum(getattr(outcome, flag) for outcome in new.outcomes)
        n_base, n_new = len(base.outcomes), len(new.outcomes)
        gaps.append((k_new * n_base - k_base * n_new) / (n_base * n_new))
    return gaps


def exact_difference(base: Score, new: Score) -> Fraction:
    """New minus base share, without rounding."""
    return Fraction(new.right, new.n) - Fraction(base.right, base.n)


def mean_interval(gaps: Sequence[float]) -> stats.Interval:
    """Interval of the mean of questions' mean differences: t from 100 questions on, else bootstrap.

    Where hardly any question differs both are too sure of it, so it reaches at least as far as
    `stats.tango` does with no question that differs. Miller 2024, arXiv 2411.00640; Efron 1979.
    """
    found = stats.question_interval([[gap] for gap in gaps])
    mean = math.fsum(gaps) / len(gaps)
    reach = stats.smallest_gate_margin(len(gaps), 0.0)
    low, high = max(-1.0, min(found.low, mean - reach)), min(1.0, max(found.high, mean + reach))
    return stats.Interval(low, high, found.method, found.confidence)


def mean_test(gaps: Sequence[float]) -> float:
    """Two-sided p of no mean difference: t from 100 questions on, else seeded sign flips.

    Without any spread t says nothing, and the signs alone are tested. Fisher 1935, The Design of
    Experiments, section 21; Phipson & Smyth 2010, Statistical Applications in Genetics 9:39.
    """
    import numpy as np
    from scipy.special import stdtr

    if len(gaps) < stats.MANY_QUESTIONS:
        signs = np.random.default_rng(stats.SEED).choice((-1.0, 1.0), (stats.DRAWS, len(gaps)))
        sums = np.abs(signs @ np.array(gaps))
        # Sums that are equal on paper differ by rounding.
        reached = int(np.count_nonzero(sums >= abs(math.fsum(gaps)) - 1e-9))
        return (1 + reached) / (1 + stats.DRAWS)
    found = stats.clustered_mean([[gap] for gap in gaps])
    if found.standard_error < 1e-12:
        return stats.mcnemar_midp(sum(gap < 0 for gap in gaps), sum(gap > 0 for gap in gaps))
    return float(2 * stdtr(len(gaps) - 1, -abs(found.mean) / found.standard_error))


def _unpaired(base: Score, new: Score, base_part: PartOfRun, new_part: PartOfRun) -> Measured:
    """The difference of two scores by their counts alone: Newcombe's interval, Fisher's test."""
    from scipy.stats import fisher_exact

    if max(base_part.repeats, new_part.repeats) > 1:
        raise ContractError(
            f"{base.run}, {new.run}: part '{base_part.name}' was asked several times a question; "
            "such answers hang together, and their counts alone cannot be compared"
        )

    def test(k1: int, k2: int) -> float:
        table = [[k1, base.n - k1], [k2, new.n - k2]]
        return min(1.0, float(fisher_exact(table).pvalue))

    interval = stats.newcombe_difference(new.right, new.n, base.right, base.n)
    n = min(base.n, new.n)
    variance = sum(side.accuracy * (1 - side.accuracy) / side.n for side in (base, new))
    return Measured(
        base=base,
        new=new,
        questions=n,
        difference=float(exact_difference(base, new)),
        ci_low=interval.low,
        ci_high=interval.high,
        ci_method=interval.method,
        p=test(base.right, new.right),
        cut_p=test(base.cut_off, new.cut_off),
        smallest_shown=stats.mde_unpaired(n, base.accuracy),
        smallest_margin=stats.smallest_gate_margin(n, n * variance),
    )


def cause_of(right: bool, cut_off: bool, rule: str) -> str:
    """`right`, or why an answer is wrong, from the rule that decided it."""
    if cut_off:
        return "cut off"
    return "right" if right else CAUSES.get(rule.partition(":")[0], "wrong")


def _flip(base: Question, new: Question) -> Flip:
    def causes(outcomes: Sequence[Outcome]) -> dict[str, int]:
        return count_words([outcome.cause for outcome in outcomes if not outcome.right])

    return Flip(
        id=base.id,
        base_right=sum(outcome.right for outcome in base.outcomes),
        new_right=sum(outcome.right for outcome in new.outcomes),
        base_answers=len(base.outcomes),
        new_answers=len(new.outcomes),
        base_causes=causes(base.outcomes),
        new_causes=causes(new.outcomes),
    )
