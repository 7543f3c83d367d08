"""Golden values of the intervals, tests and roundings, each with the place that it was taken from.

Tolerances are half a unit of the last published digit, as the sources print no more.
"""

import math
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from qualeval import stats
from qualeval.stats import Interval

FOUR_PLACES = 5e-5
THREE_PLACES = 5e-4


def points(share: float, places: int = 1) -> str:
    """A share as it is printed, in percentage points."""
    return stats.half_up(Fraction(share) * 100, places)


def ends(interval: Interval) -> tuple[float, float]:
    return interval.low, interval.high


def near(low: float, high: float, tolerance: float) -> object:
    return pytest.approx((low, high), abs=tolerance)


@pytest.mark.parametrize(
    "right, n, share, margin, low, high",
    [
        pytest.param(259, 400, "64.8", "4.7", "59.95", "69.27", id="MMLU-Pro"),
        pytest.param(75, 198, "37.9", "6.7", "31.41", "44.81", id="GPQA Diamond"),
        pytest.param(180, 200, "90.0", "4.2", "85.06", "93.43", id="IFEval"),
        pytest.param(27, 40, "67.5", "13.9", "52.02", "79.92", id="LiveCodeBench"),
        # z = 1.96 instead of the exact quantile would give 57.16.
        pytest.param(29, 40, "72.5", "13.4", "57.17", "83.89", id="long text 8K"),
        pytest.param(24, 40, "60.0", "14.5", "44.60", "73.65", id="long text 32K"),
        pytest.param(25, 30, "83.3", "13.1", "66.44", "92.66", id="GPQA 30 thinking"),
    ],
)
def test_published_row_is_reproduced_to_the_digit(
    right: int, n: int, share: str, margin: str, low: str, high: str
) -> None:
    """Percent and margin as the published tables print them: half of Wilson's width."""
    interval = stats.wilson(right, n)

    assert share == stats.percent(right, n)
    assert margin == points(stats.half_width(interval))
    assert (low, high) == (points(interval.low, 2), points(interval.high, 2))


@pytest.mark.parametrize(
    "right, n, wald, published",
    [
        pytest.param(259, 400, "4.7", "4.7", id="MMLU-Pro, too close to tell"),
        pytest.param(75, 198, "6.8", "6.7", id="GPQA Diamond"),
        pytest.param(180, 200, "4.2", "4.2", id="IFEval, too close to tell"),
        pytest.param(27, 40, "14.5", "13.9", id="LiveCodeBench"),
        pytest.param(29, 40, "13.8", "13.4", id="long text 8K"),
        pytest.param(24, 40, "15.2", "14.5", id="long text 32K"),
        pytest.param(25, 30, "13.3", "13.1", id="GPQA 30 thinking"),
    ],
)
def test_wald_margin_would_not_be_the_published_one(
    right: int, n: int, wald: str, published: str
) -> None:
    """1.96 standard errors print another margin on five of the seven rows; ours never does."""
    p = right / n

    assert wald == points(stats.Z * math.sqrt(p * (1 - p) / n))
    assert published == points(stats.half_width(stats.wilson(right, n)))


@pytest.mark.parametrize(
    "right, n, low, high",
    [
        pytest.param(81, 263, 0.2553, 0.3662, id="Newcombe 1998a table I method 3: 81 of 263"),
        pytest.param(15, 148, 0.0624, 0.1605, id="Newcombe 1998a table I method 3: 15 of 148"),
        pytest.param(0, 20, 0.0000, 0.1611, id="Newcombe 1998a table I method 3: 0 of 20"),
        pytest.param(1, 29, 0.0061, 0.1718, id="Newcombe 1998a table I method 3: 1 of 29"),
        pytest.param(0, 10, 0.0000, 0.2775, id="scipy: 0 of 10"),
        pytest.param(10, 10, 0.7225, 1.0000, id="scipy: 10 of 10"),
    ],
)
def test_wilson_golden(right: int, n: int, low: float, high: float) -> None:
    """Newcombe's table, which many public test suites share."""
    interval = stats.wilson(right, n)

    assert near(low, high, FOUR_PLACES) == ends(interval)
    assert (interval.method, interval.confidence) == ("wilson", 0.95)


@pytest.mark.parametrize(
    "right, n, low, high",
    [
        pytest.param(81, 263, 0.2527, 0.3676, id="81 of 263"),
        pytest.param(15, 148, 0.0578, 0.1617, id="15 of 148"),
        pytest.param(0, 20, 0.0000, 0.1684, id="0 of 20"),
        pytest.param(1, 29, 0.0009, 0.1776, id="1 of 29"),
    ],
)
def test_wilson_is_narrower_than_the_exact_interval(
    right: int, n: int, low: float, high: float
) -> None:
    """Clopper-Pearson's values in Newcombe 1998a table I: Wilson's lie inside."""
    interval = stats.wilson(right, n)

    assert low <= interval.low
    assert interval.high < high


@pytest.mark.parametrize("n", [1, 7, 40, 12_000])
def test_wilson_ends_are_exact_for_none_and_all_right(n: int) -> None:
    """No rounding error at the ends, and never a width of zero."""
    assert stats.wilson(0, n).low == 0.0
    assert stats.wilson(n, n).high == 1.0
    assert stats.half_width(stats.wilson(n, n)) > 0


def test_wilson_narrows_with_less_confidence() -> None:
    """The confidence asked for is used and recorded."""
    assert stats.half_width(stats.wilson(25, 30, 0.9)) < stats.half_width(stats.wilson(25, 30))
    assert stats.wilson(25, 30, 0.9).confidence == 0.9


@pytest.mark.parametrize(
    "right, n, share, low, high",
    [
        pytest.param(59, 400, "14.8", "11.6", "18.6", id="MMLU-Pro cut off"),
        pytest.param(60, 198, "30.3", "24.3", "37.0", id="GPQA cut off"),
        pytest.param(1, 40, "2.5", "0.4", "12.9", id="long text cut off"),
        pytest.param(4, 30, "13.3", "5.3", "29.7", id="thinking cut off"),
        pytest.param(259, 341, "76.0", "71.1", "80.2", id="MMLU-Pro of finished"),
        pytest.param(75, 138, "54.3", "46.0", "62.4", id="GPQA of finished"),
        pytest.param(25, 26, "96.2", "81.1", "99.3", id="thinking of finished"),
    ],
)
def test_cut_off_block_of_the_published_rows(
    right: int, n: int, share: str, low: str, high: str
) -> None:
    """Cut-off rates and shares of finished answers, computed from the published counts."""
    interval = stats.wilson(right, n)

    assert (share, low, high) == (
        stats.percent(right, n),
        points(interval.low),
        points(interval.high),
    )


@pytest.mark.parametrize(
    "k1, n1, k2, n2, low, high",
    [
        (56, 70, 48, 80, 0.0524, 0.3339),
        (9, 10, 3, 10, 0.1705, 0.8090),
        (6, 7, 2, 7, 0.0582, 0.8062),
        (5, 56, 0, 29, -0.0381, 0.1926),
        (0, 10, 0, 20, -0.1611, 0.2775),
        (0, 10, 0, 10, -0.2775, 0.2775),
        (10, 10, 0, 20, 0.6791, 1.0),
        (10, 10, 0, 10, 0.6075, 1.0),
    ],
)
def test_newcombe_difference_golden(
    k1: int, n1: int, k2: int, n2: int, low: float, high: float
) -> None:
    """Newcombe 1998b (Statistics in Medicine 17:873), table II, method 10."""
    interval = stats.newcombe_difference(k1, n1, k2, n2)

    assert near(low, high, FOUR_PLACES) == ends(interval)
    assert (interval.method, interval.confidence) == ("newcombe-10", 0.95)


# Published tables give first minus second, (b - c) / n, and are kept here as published.
TANGO_TABLES = [
    pytest.param(43, 0, 1, 0, 0.90, -0.096, 0.037, THREE_PLACES, id="Tango 1998 table V"),
    pytest.param(1, 1, 7, 12, 0.95, -0.517, -0.026, THREE_PLACES, id="Fagerland et al. 2014"),
    pytest.param(59, 6, 16, 80, 0.95, -0.1240, -0.0054, FOUR_PLACES, id="contingencytables (R)"),
    pytest.param(4, 9, 3, 16, 0.95, -0.027, 0.390, THREE_PLACES, id="Tango 1998, 9:3 of 32"),
    pytest.param(0, 3, 0, 0, 0.95, -0.1230, 1.0, FOUR_PLACES, id="all only in the first"),
    pytest.param(0, 0, 3, 0, 0.95, -1.0, 0.1230, FOUR_PLACES, id="all only in the second"),
    pytest.param(100, 40, 20, 0, 0.95, 0.0309, 0.2181, FOUR_PLACES, id="PropCIs (R) scoreci.mp"),
    pytest.param(54, 0, 0, 0, 0.95, -0.0664, 0.0664, FOUR_PLACES, id="none discordant"),
    pytest.param(794, 150, 86, 570, 0.95, 0.0213, 0.0587, THREE_PLACES, id="Agresti approval"),
]


@pytest.mark.parametrize("a, b, c, d, confidence, low, high, tolerance", TANGO_TABLES)
def test_tango_golden(
    a: int, b: int, c: int, d: int, confidence: float, low: float, high: float, tolerance: float
) -> None:
    """Ours is second minus first, so the published ends change places and signs.

    The approval table (Agresti, Categorical Data Analysis) has a Wald interval: with 1,600 pairs
    the two agree to three places.
    """
    interval = stats.tango(a, b, c, d, confidence)

    assert near(-high, -low, tolerance) == ends(interval)
    assert (interval.method, interval.confidence) == ("tango", confidence)


@pytest.mark.parametrize("n", [1, 3, 198, 12_000])
def test_tango_edges_have_closed_forms(n: int) -> None:
    """No item discordant: z^2 / (n + z^2) each way. All gained: from (n - z^2) / (n + z^2) to 1."""
    square = stats.Z**2

    none = pytest.approx((-square / (n + square), square / (n + square)), abs=1e-9)
    assert none == ends(stats.tango(n, 0, 0, 0))
    assert none == ends(stats.tango(0, 0, 0, n))
    assert pytest.approx(((n - square) / (n + square), 1.0), abs=1e-9) == ends(
        stats.tango(0, 0, n, 0)
    )
    assert stats.tango(0, 0, n, 0).high == 1.0
    assert stats.tango(0, n, 0, 0).low == -1.0


def newcombe_paired(a: int, b: int, c: int, d: int) -> tuple[float, float]:
    """Newcombe 1998, Statistics in Medicine 17:2635, method 10: an independent check of `tango`."""
    n = a + b + c + d
    first, second = stats.wilson(a + b, n), stats.wilson(a + c, n)
    p1, p2 = (a + b) / n, (a + c) / n
    product = (a + b) * (c + d) * (a + c) * (b + d)
    agreement: float = a * d - b * c
    if agreement > 0:
        agreement = max(agreement - n / 2, 0)
    phi = agreement / math.sqrt(product) if product else 0.0

    def reach(x: float, y: float) -> float:
        return math.sqrt(x * x - 2 * phi * x * y + y * y)

    below = reach(p1 - first.low, second.high - p2)
    above = reach(first.high - p1, p2 - second.low)
    return p1 - p2 - below, p1 - p2 + above


@pytest.mark.parametrize(
    "a, b, c, d, low, high, tolerance",
    [
        pytest.param(20, 12, 2, 16, 0.0562, 0.3292, FOUR_PLACES, id="Newcombe 1998c example"),
        pytest.param(1, 1, 7, 12, -0.507, -0.026, THREE_PLACES, id="Fagerland et al. 2014"),
        pytest.param(59, 6, 16, 80, -0.1186, -0.0046, FOUR_PLACES, id="contingencytables (R)"),
        pytest.param(1, 0, 0, 1, -0.5734, 0.5734, FOUR_PLACES, id="one right, one wrong in both"),
    ],
)
def test_tango_is_close_to_newcombes_paired_interval(
    a: int, b: int, c: int, d: int, low: float, high: float, tolerance: float
) -> None:
    """Two methods derived apart agree within 0.1 even on these small tables."""
    assert near(low, high, tolerance) == newcombe_paired(a, b, c, d)
    assert near(-high, -low, 0.1) == ends(stats.tango(a, b, c, d))


@pytest.mark.parametrize(
    "b, c, exact, midp",
    [
        pytest.param(6, 16, 0.052479, 0.034690, id="contingencytables (R), chapter 8"),
        pytest.param(1, 7, 0.0703125, 0.0390625, id="Fagerland et al. 2013"),
    ],
)
def test_mcnemar_golden(b: int, c: int, exact: float, midp: float) -> None:
    """Exact and mid-p of two published tables."""
    assert pytest.approx(exact, abs=5e-7) == stats.mcnemar_exact(b, c)
    assert pytest.approx(midp, abs=5e-7) == stats.mcnemar_midp(b, c)


def test_no_discordant_item_is_no_evidence() -> None:
    """p is 1 where binomial formulas would divide by nothing or give one half."""
    assert stats.mcnemar_exact(0, 0) == 1.0
    assert stats.mcnemar_midp(0, 0) == 1.0


def test_even_split_has_exact_p_of_one_and_a_midp_below() -> None:
    """Fagerland et al. 2013: 1 minus half the chance of the even split, here 1 - 20 / 64 / 2."""
    assert stats.mcnemar_exact(3, 3) == 1.0
    assert pytest.approx(1 - 20 / 64 / 2) == stats.mcnemar_midp(3, 3)


@pytest.mark.parametrize(
    "test, smaller, larger",
    [
        *((stats.mcnemar_exact, b, c) for b, c in [(0, 6), (1, 8), (2, 10), (5, 15)]),
        *((stats.mcnemar_exact, b, c) for b, c in [(9, 21), (13, 27)]),
        *((stats.mcnemar_midp, b, c) for b, c in [(0, 5), (1, 7), (2, 9), (5, 14)]),
        *((stats.mcnemar_midp, b, c) for b, c in [(9, 20), (13, 26)]),
    ],
)
def test_smallest_tables_that_can_be_significant(
    test: Callable[[int, int], float], smaller: int, larger: int
) -> None:
    """One discordant item less on the larger side is not significant at 5 %."""
    assert test(smaller, larger) < 0.05
    assert test(smaller, larger - 1) >= 0.05


def test_holm_golden() -> None:
    """The textbook example; statsmodels gives the same."""
    assert pytest.approx([0.03, 0.06, 0.06, 0.02]) == stats.holm([0.01, 0.04, 0.03, 0.005])


def test_holm_leaves_a_single_p_as_it_is() -> None:
    """One part, no adjustment."""
    assert stats.holm([0.04]) == [0.04]


def test_clustered_mean_of_a_small_table() -> None:
    """By hand: question means 1/2, 1, 0, 1; their variance 11/48; two of four questions noisy."""
    found = stats.clustered_mean([[1, 0], [1, 1], [0, 0], [1, 1]])

    assert found.mean == 0.625
    assert pytest.approx(math.sqrt(11 / 48 / 4)) == found.standard_error
    assert found.within is not None
    assert found.between is not None
    assert pytest.approx(1 / 2 / 2 / 16) == found.within
    assert pytest.approx(found.standard_error**2) == found.between + found.within
    # 3.182446 is the 97.5 % point of t with 3 degrees of freedom.
    reach = 3.182446 * found.standard_error
    assert near(0.625 - reach, 0.625 + reach, 1e-6) == ends(found.interval)
    assert (found.interval.method, found.interval.confidence) == ("t-clustered", 0.95)


def test_clustered_error_is_larger_than_treating_repeats_as_independent() -> None:
    """Four repeats that all agree carry the information of one."""
    one = [[1.0]] * 15 + [[0.0]] * 15
    four = [[1.0] * 4] * 15 + [[0.0] * 4] * 15

    assert stats.clustered_mean(four).standard_error == stats.clustered_mean(one).standard_error
    assert stats.clustered_mean(four).within == 0


def test_repeats_noisier_than_the_questions_leave_no_part_negative() -> None:
    """Equal question means: all the noise is within, and there is nothing between."""
    found = stats.clustered_mean([[1, 0], [0, 1], [1, 0]])

    assert (found.between, found.within, found.standard_error) == (0, 0, 0)


def test_split_of_the_variance_needs_a_repeat_of_every_question() -> None:
    """One question asked once: the two parts cannot be told apart."""
    found = stats.clustered_mean([[1, 0], [1]])

    assert (found.between, found.within) == (None, None)


def test_bootstrap_repeats_with_its_seed_and_only_with_it() -> None:
    """Same seed, same ends; the ends of another seed are close by."""
    dice = Random(42)
    scores = [[dice.random()] for _ in range(40)]
    first, again, other = (stats.question_bootstrap(scores, seed) for seed in (42, 42, 43))

    assert first == again
    assert ends(first) != ends(other)
    assert near(*ends(first), 0.02) == ends(other)
    assert (first.method, first.confidence) == ("bootstrap-percentile", 0.95)


def test_bootstrap_is_close_to_the_t_interval_where_both_are_good() -> None:
    """198 questions with four repeats each, scores well away from 0 and 1."""
    dice = Random(42)
    scores = [[float(dice.random() < 0.6) for _ in range(4)] for _ in range(198)]

    assert near(*ends(stats.clustered_mean(scores).interval), 0.005) == ends(
        stats.question_bootstrap(scores, 42)
    )


# Percentage points as printed; None where more discordance than assumed would be needed.
MDE_PAIRED: dict[int, list[str | None]] = {
    30: [None, None, "27"],
    40: [None, "19", "24"],
    100: ["8.8", "12", "15"],
    198: ["6.3", "8.9", "10.8"],
    200: ["6.2", "8.8", "10.8"],
    300: ["5.1", "7.2", "8.8"],
    400: ["4.4", "6.2", "7.6"],
}
MDE_UNPAIRED = {
    30: ["33", "35", "34", "31"],
    40: ["29", "31", "29", "26"],  # 29.49: rounding twice would make it 30
    100: ["19", "20", "18", "15"],
    198: ["13.9", "13.9", "12.3", "10.0"],
    200: ["13.8", "13.8", "12.3", "10.0"],
    300: ["11.3", "11.2", "9.9", "7.9"],
    400: ["9.8", "9.7", "8.5", "6.7"],
}
GATE_MARGINS = {
    30: ["11.4", "16.2", "22.9", "28.0"],
    40: ["9.9", "14.0", "19.8", "24.3"],
    198: ["4.5", "6.3", "8.9", "10.9"],
    400: ["3.1", "4.4", "6.3", "7.7"],
    918: ["2.1", "2.9", "4.1", "5.1"],
}


def printed_like(value: float | None, printed: str | None) -> str | None:
    """The value in points with as many decimals as the printed one has."""
    places = 1 if printed and "." in printed else 0
    return None if value is None else stats.half_up(Fraction(value) * 100, places)


@pytest.mark.parametrize("n", MDE_PAIRED)
def test_smallest_paired_difference(n: int) -> None:
    """Connor 1987, two-sided 5 %, power 80 %, at 10, 20 and 30 % discordant."""
    for share, printed in zip((0.1, 0.2, 0.3), MDE_PAIRED[n], strict=True):
        assert printed == printed_like(stats.mde_paired(n, share), printed)


@pytest.mark.parametrize("n", MDE_UNPAIRED)
def test_smallest_unpaired_difference(n: int) -> None:
    """Two separate runs, two-sided 5 %, power 80 %, from a true share of .5, .65, .8 and .9."""
    for p, printed in zip((0.5, 0.65, 0.8, 0.9), MDE_UNPAIRED[n], strict=True):
        assert printed == printed_like(stats.mde_unpaired(n, p), printed)


@pytest.mark.parametrize("n", GATE_MARGINS)
def test_smallest_gate_margin(n: int) -> None:
    """2.80 * sqrt(discordant / n), at 5, 10, 20 and 30 % discordant."""
    for share, printed in zip((0.05, 0.1, 0.2, 0.3), GATE_MARGINS[n], strict=True):
        assert printed == printed_like(stats.smallest_gate_margin(n, share), printed)


def test_two_points_cannot_be_proved_on_any_single_part() -> None:
    """Even the longest list, at 5 % discordant, needs a wider gate."""
    assert stats.smallest_gate_margin(400, 0.05) > 0.02


def test_identical_runs_cannot_prove_any_margin() -> None:
    """Nothing discordant: the gate still has to be wider than the interval's own reach."""
    for n in (1, 40, 400):
        reach = -stats.tango(n, 0, 0, 0).low
        assert pytest.approx(reach, abs=1e-9) == stats.smallest_gate_margin(n, 0)


@pytest.mark.parametrize("n, share", [(1, 1.0), (3, 0.9), (40, 0.0), (40, 0.1)])
def test_no_paired_difference_can_be_shown(n: int, share: float) -> None:
    """Too few items, or too few of them discordant."""
    assert stats.mde_paired(n, share) is None


def test_no_unpaired_difference_can_be_shown_with_two_items() -> None:
    """Not even from half right to none."""
    assert stats.mde_unpaired(2, 0.5) is None
    assert stats.mde_unpaired(30, 1.0) == stats.mde_unpaired(30, 0.0) is not None


@pytest.mark.parametrize(
    "value, places, printed",
    [
        pytest.param(Fraction(4365, 2), 0, "2183", id="median of two counts"),
        pytest.param(Fraction(49, 4), 1, "12.3", id="a half goes up, not to even"),
        pytest.param(Fraction(15, 100), 1, "0.2", id="as a float it would be below the half"),
        pytest.param(Fraction(-49, 4), 1, "-12.3", id="mirrored below zero"),
        pytest.param(Fraction(-1, 100), 1, "0.0", id="no minus zero"),
        pytest.param(Fraction(1, 100), 3, "0.010", id="zeros before and after"),
        pytest.param(Fraction(1999, 2000), 2, "1.00", id="carried over"),
        pytest.param(7, 0, "7", id="integer"),
        pytest.param(-7, 2, "-7.00", id="negative integer"),
        pytest.param(0, 1, "0.0", id="zero"),
    ],
)
def test_half_up(value: Fraction | int, places: int, printed: str) -> None:
    """Exact decimal rounding."""
    assert printed == stats.half_up(value, places)


@pytest.mark.parametrize(
    "right, n, places, printed",
    [
        (259, 400, 1, "64.8"),
        (1, 8, 1, "12.5"),
        (1, 16, 1, "6.3"),
        (120, 918, 1, "13.1"),
        (0, 40, 1, "0.0"),
        (40, 40, 1, "100.0"),
        (2, 3, 0, "67"),
    ],
)
def test_percent(right: int, n: int, places: int, printed: str) -> None:
    """Rounded half up from the two integers."""
    assert printed == stats.percent(right, n, places)


# Untyped, since the point is what happens when the type is wrong.
NAN: Any = math.nan
FLOAT: Any = 2.0


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: stats.wilson(0, 0), "n must be"),
        (lambda: stats.wilson(5, 4), "right must not be more than n: 5 > 4"),
        (lambda: stats.wilson(-1, 4), "right must be"),
        (lambda: stats.wilson(NAN, 4), "right must be"),
        (lambda: stats.wilson(FLOAT, 4), "right must be"),
        (lambda: stats.wilson(2, 4, NAN), "confidence must be"),
        (lambda: stats.wilson(2, 4, 95), "confidence must be"),
        (lambda: stats.newcombe_difference(1, 0, 1, 2), "n1 must be"),
        (lambda: stats.newcombe_difference(1, 2, 3, 2), "k2 must not be more than n2: 3 > 2"),
        (lambda: stats.tango(1, -1, 0, 0), "b must be"),
        (lambda: stats.tango(0, 0, 0, 0), r"a \+ b \+ c \+ d must be"),
        (lambda: stats.tango(1, 1, 1, 1, 1.0), "confidence must be"),
        (lambda: stats.mcnemar_exact(-1, 2), "b must be"),
        (lambda: stats.mcnemar_midp(1, NAN), "c must be"),
        (lambda: stats.holm([]), "pvalues must be"),
        (lambda: stats.holm([0.1, NAN]), "pvalues must be"),
        (lambda: stats.holm([1.1]), "pvalues must be"),
        (lambda: stats.clustered_mean([]), "scores_by_question must hold at least 2"),
        (lambda: stats.clustered_mean([[1, 0]]), "scores_by_question must hold at least 2"),
        (lambda: stats.clustered_mean([[1], []]), "scores_by_question: question 1 has no"),
        (lambda: stats.question_bootstrap([], 42), "scores_by_question must hold at least 1"),
        (lambda: stats.question_bootstrap([[NAN]], 42), "scores_by_question: question 0 has"),
        (lambda: stats.question_bootstrap([[1]], -1), "seed must be"),
        (lambda: stats.mde_paired(0, 0.1), "n must be"),
        (lambda: stats.mde_paired(40, 10), "discordant_share must be"),
        (lambda: stats.mde_unpaired(40, -0.1), "p must be"),
        (lambda: stats.smallest_gate_margin(40, NAN), "discordant_share must be"),
        (lambda: stats.percent(1, 0), "n must be"),
        (lambda: stats.percent(1, 2, -1), "places must be"),
        (lambda: stats.half_up(FLOAT, 1), "value must be"),
    ],
)
def test_bad_argument_is_refused_by_name(call: Callable[[], object], message: str) -> None:
    """A ValueError that begins with the argument's name, never a number."""
    with pytest.raises(ValueError, match=f"^{message}"):
        call()


def test_importing_the_module_leaves_scipy_alone() -> None:
    """A command that needs no interval must not wait for scipy."""
    code = "import sys, qualeval.stats; sys.exit('scipy' in sys.modules or 'numpy' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_counts_summed_with_numpy_are_welcome() -> None:
    """A numpy integer is a whole number too."""
    import numpy as np

    assert stats.wilson(3, 4) == stats.wilson(np.int64(3), np.int64(4))  # type: ignore[arg-type]


def random_tables(count: int) -> list[tuple[int, int, int, int]]:
    dice = Random(42)
    return [(dice.randrange(60), dice.randrange(9), dice.randrange(30), 1) for _ in range(count)]


def test_statsmodels_agrees_on_random_tables() -> None:
    """Newcombe's difference, exact McNemar and Holm, computed by other people's code."""
    reason = "statsmodels is an independent check and no dependency"
    proportion = pytest.importorskip("statsmodels.stats.proportion", reason=reason)
    contingency = pytest.importorskip("statsmodels.stats.contingency_tables", reason=reason)
    multitest = pytest.importorskip("statsmodels.stats.multitest", reason=reason)

    for a, b, c, d in random_tables(100):
        n1, n2 = a + b + d, a + c + d
        theirs = proportion.confint_proportions_2indep(a, n1, a, n2, method="newcomb")
        assert near(theirs[0], theirs[1], 1e-9) == ends(stats.newcombe_difference(a, n1, a, n2))
        exact = contingency.mcnemar([[a, b], [c, d]], exact=True).pvalue
        assert pytest.approx(exact, abs=1e-9) == stats.mcnemar_exact(b, c)
    dice = Random(42)
    for size in range(1, 20):
        pvalues = [dice.random() ** 3 for _ in range(size)]
        theirs = multitest.multipletests(pvalues, method="holm")[1]
        assert pytest.approx(list(theirs)) == stats.holm(pvalues)
