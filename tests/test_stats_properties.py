"""What holds for every table of counts: ranges, order, mirror images, and agreement of methods."""

import math
from fractions import Fraction
from statistics import NormalDist
from unittest.mock import patch

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from qualeval import stats

# The first call in a process loads scipy, which no deadline should count.

COUNT = st.integers(0, 400)
SHARE = st.floats(0, 1)
SIZE = st.integers(1, 20_000)
ROUNDING = 1e-9


@st.composite
def parts(draw: st.DrawFn) -> tuple[int, int]:
    """`right` of `n`."""
    n = draw(SIZE)
    return draw(st.integers(0, n)), n


@st.composite
def tables(draw: st.DrawFn) -> tuple[int, int, int, int]:
    """A paired table with at least one item."""
    a, b, c, d = (draw(COUNT) for _ in range(4))
    assume(a + b + c + d > 0)
    return a, b, c, d


def questions(least: int) -> st.SearchStrategy[list[list[float]]]:
    return st.lists(st.lists(SHARE, min_size=1, max_size=4), min_size=least, max_size=30)


def mcnemar_asymptotic(b: int, c: int) -> float:
    """McNemar 1947 without continuity correction."""
    return 2 * NormalDist().cdf(-abs(b - c) / math.sqrt(b + c)) if b + c else 1.0


def test_asymptotic_mcnemar_golden() -> None:
    """The helper itself: contingencytables (R), Fagerland et al. 2013, and Agresti's chi2 17.36."""
    assert pytest.approx(0.033006, abs=5e-7) == mcnemar_asymptotic(6, 16)
    assert pytest.approx(0.0339, abs=5e-5) == mcnemar_asymptotic(1, 7)
    z = NormalDist().inv_cdf(mcnemar_asymptotic(150, 86) / 2)
    assert pytest.approx(17.36, abs=5e-3) == z**2


@given(parts())
def test_wilson_holds_the_share_and_stays_within_0_and_1(part: tuple[int, int]) -> None:
    """0 <= low <= right / n <= high <= 1, and low < high."""
    right, n = part
    interval = stats.wilson(right, n)

    assert 0 <= interval.low <= right / n <= interval.high <= 1
    assert interval.low < interval.high


@given(parts())
def test_wilson_equals_its_closed_form(part: tuple[int, int]) -> None:
    """Newcombe 1998, method 3, written out."""
    right, n = part
    square = stats.Z**2
    centre = (right + square / 2) / (n + square)
    reach = stats.Z * math.sqrt(right * (n - right) / n + square / 4) / (n + square)
    interval = stats.wilson(right, n)

    assert pytest.approx(centre - reach, abs=ROUNDING) == interval.low
    assert pytest.approx(centre + reach, abs=ROUNDING) == interval.high
    assert pytest.approx(reach, abs=ROUNDING) == stats.half_width(interval)


@given(parts())
def test_wilson_of_the_wrong_answers_is_the_mirror_image(part: tuple[int, int]) -> None:
    """Counting wrong instead of right changes nothing but the side."""
    right, n = part
    straight, mirrored = stats.wilson(right, n), stats.wilson(n - right, n)

    assert pytest.approx(1 - straight.high, abs=ROUNDING) == mirrored.low
    assert pytest.approx(1 - straight.low, abs=ROUNDING) == mirrored.high


@given(parts(), st.integers(2, 50))
def test_wilson_shrinks_with_n(part: tuple[int, int], times: int) -> None:
    """The same share of more items is known better."""
    right, n = part
    more = stats.wilson(right * times, n * times)

    assert stats.half_width(more) < stats.half_width(stats.wilson(right, n))


@given(parts(), parts())
def test_newcombe_difference_holds_the_difference_and_mirrors(
    first: tuple[int, int], second: tuple[int, int]
) -> None:
    """Between -1 and 1; swapping the two runs changes the sign."""
    interval = stats.newcombe_difference(*first, *second)
    swapped = stats.newcombe_difference(*second, *first)
    difference = first[0] / first[1] - second[0] / second[1]

    assert -1 <= interval.low <= difference <= interval.high <= 1
    assert pytest.approx((-interval.high, -interval.low)) == (swapped.low, swapped.high)


@given(tables())
@example((0, 0, 0, 1))
@example((0, 1, 0, 0))
@example((0, 0, 1, 0))
@example((0, 399, 1, 0))
@example((100_000_000, 0, 0, 0))
def test_tango_holds_the_difference_and_mirrors(table: tuple[int, int, int, int]) -> None:
    """Between -1 and 1; swapping the two runs changes nothing but the sign."""
    a, b, c, d = table
    interval, swapped = stats.tango(a, b, c, d), stats.tango(a, c, b, d)

    assert -1 <= interval.low <= (c - b) / (a + b + c + d) <= interval.high <= 1
    assert interval.low < interval.high
    assert (-interval.high, -interval.low) == (swapped.low, swapped.high)


@given(tables())
def test_tango_does_not_ask_which_concordant_items_were_right(
    table: tuple[int, int, int, int],
) -> None:
    """Only b, c and n matter."""
    a, b, c, d = table

    assert stats.tango(a, b, c, d) == stats.tango(a + d, b, c, 0)


@given(tables())
def test_tango_holds_zero_exactly_when_mcnemar_does_not_reject(
    table: tuple[int, int, int, int],
) -> None:
    """At a difference of 0 Tango's statistic is McNemar's: interval and test never disagree."""
    a, b, c, d = table
    p = mcnemar_asymptotic(b, c)
    assume(abs(p - 0.05) > 1e-7)
    interval = stats.tango(a, b, c, d)

    assert (interval.low <= 0 <= interval.high) == (p >= 0.05)


@given(COUNT, COUNT)
def test_midp_lies_between_0_and_the_exact_p(b: int, c: int) -> None:
    """Both are p-values, and neither asks which run came first."""
    exact, midp = stats.mcnemar_exact(b, c), stats.mcnemar_midp(b, c)

    assert 0 < midp <= exact <= 1
    assert (exact, midp) == (stats.mcnemar_exact(c, b), stats.mcnemar_midp(c, b))


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_binomial_sum(b: int, c: int) -> None:
    """Counted with whole numbers: twice the smaller tail, the split itself counted half."""
    assume(b != c)
    n, smaller = b + c, min(b, c)
    tail = sum(math.comb(n, k) for k in range(smaller + 1))

    assert pytest.approx(float(Fraction(2 * tail, 2**n))) == stats.mcnemar_exact(b, c)
    half_counted = Fraction(2 * tail - math.comb(n, smaller), 2**n)
    assert pytest.approx(float(half_counted)) == stats.mcnemar_midp(b, c)


@given(st.lists(SHARE, min_size=1, max_size=12))
def test_holm_is_never_below_the_raw_p_and_keeps_the_order(pvalues: list[float]) -> None:
    """And never above Bonferroni's: as many times the raw p as there are parts."""
    adjusted = stats.holm(pvalues)

    for raw, new in zip(pvalues, adjusted, strict=True):
        assert raw <= new <= min(1.0, raw * len(pvalues))
    in_order = [new for _, new in sorted(zip(pvalues, adjusted, strict=True))]
    assert in_order == sorted(in_order)


@given(st.permutations([0.001, 0.01, 0.02, 0.2, 0.9]))
def test_holm_does_not_depend_on_the_order_of_the_parts(pvalues: list[float]) -> None:
    """Each p-value gets the same adjustment wherever it stands."""
    expected = dict(zip(sorted(pvalues), stats.holm(sorted(pvalues)), strict=True))

    assert [expected[p] for p in pvalues] == stats.holm(pvalues)


@given(questions(2))
def test_clustered_mean_lies_in_its_interval_and_splits_its_variance(
    scores: list[list[float]],
) -> None:
    """The mean of shares is a share; the parts are not negative and add up."""
    found = stats.clustered_mean(scores)

    assert 0 <= found.mean <= 1
    assert found.interval.low <= found.mean <= found.interval.high
    assert (found.between is None) == (found.within is None)
    if found.between is not None and found.within is not None:
        assert min(found.between, found.within) >= 0
        total = found.between + found.within
        assert pytest.approx(found.standard_error**2, abs=ROUNDING) == total


@given(st.lists(st.lists(st.integers(0, 1), min_size=3, max_size=3), min_size=2, max_size=30))
def test_clustered_error_is_millers(scores: list[list[float]]) -> None:
    """Miller 2024, clustered standard error with the small-sample factor C / (C - 1)."""
    size, clusters = 3 * len(scores), len(scores)
    mean = sum(map(sum, scores)) / size
    squares = sum(sum(score - mean for score in repeats) ** 2 for repeats in scores)
    error = math.sqrt(squares * clusters / (clusters - 1)) / size

    assert pytest.approx(error, abs=ROUNDING) == stats.clustered_mean(scores).standard_error


@given(questions(1), st.integers(0, 2**32))
def test_bootstrap_stays_among_the_question_means_and_repeats(
    scores: list[list[float]], seed: int
) -> None:
    """Redrawn means cannot leave the range of what is redrawn; same seed, same interval."""
    means = [sum(repeats) / len(repeats) for repeats in scores]
    with patch.object(stats, "DRAWS", 100):
        interval, again = (stats.question_bootstrap(scores, seed) for _ in range(2))

    assert 0 <= interval.low <= interval.high <= 1
    assert min(means) - ROUNDING <= interval.low
    assert interval.high <= max(means) + ROUNDING
    assert interval == again


@given(SIZE, SHARE)
def test_smallest_paired_difference_solves_connors_formula(n: int, share: float) -> None:
    """Put back into n = (z sqrt(q) + z_power sqrt(q - d^2))^2 / d^2 it gives n again."""
    assume(share > 1e-6)
    delta = stats.mde_paired(n, share)
    assume(delta is not None)
    assert delta is not None

    assert 0 < delta <= share
    unexplained = math.sqrt(share - delta**2)
    needed = (stats.Z * math.sqrt(share) + stats.Z_POWER * unexplained) ** 2 / delta**2
    assert pytest.approx(n) == needed


@given(SIZE, SHARE)
def test_smallest_unpaired_difference_is_a_possible_one_and_mirrors(n: int, p: float) -> None:
    """It never leads out of 0..1, from p as from 1 - p; more items show smaller ones."""
    delta = stats.mde_unpaired(n, p)
    assume(delta is not None)
    assert delta is not None

    assert 0 < delta <= max(p, 1 - p)
    assert pytest.approx(delta) == stats.mde_unpaired(n, 1 - p)
    more = stats.mde_unpaired(2 * n, p)
    assert more is not None
    assert more < delta


@given(SIZE, SHARE)
def test_gate_margin_shrinks_with_n_and_grows_with_discordance(n: int, share: float) -> None:
    """And it is never zero."""
    margin = stats.smallest_gate_margin(n, share)

    assert 0 < stats.smallest_gate_margin(2 * n, share) < margin
    assert stats.smallest_gate_margin(n, 0) <= stats.smallest_gate_margin(n, share / 2) <= margin


@given(st.fractions(), st.integers(0, 6))
def test_half_up_is_the_nearest_number_with_these_places(value: Fraction, places: int) -> None:
    """Off by half a unit of the last place at most, and by exactly half only away from zero."""
    printed = stats.half_up(value, places)
    off = (abs(Fraction(printed)) - abs(value)) * 10**places

    assert Fraction(-1, 2) < off <= Fraction(1, 2)
    assert len(printed.partition(".")[2]) == places
    assert not (printed.startswith("-") and Fraction(printed) == 0)


@given(parts())
def test_percent_runs_from_0_to_100(part: tuple[int, int]) -> None:
    """A share of counts is never printed outside its range."""
    assert 0 <= Fraction(stats.percent(*part)) <= 100


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_that_of_scipy(counts: tuple[int, int]) -> None:
    """The library's own Wilson interval, which costs a second to import."""
    right, n = counts
    found = binomtest(right, n).proportion_ci(0.95, method="wilson")
    ours = stats.wilson(right, n)
    assert pytest.approx((found.low, found.high), abs=1e-12) == (ours.low, ours.high)


@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_is_that_of_scipy(b: int, c: int) -> None:
    """Exact p by the library's binomial test, mid-p by its binomial distribution."""
    exact = binomtest(b, b + c, 0.5).pvalue if b + c else 1.0
    here = binom.pmf(min(b, c), b + c, 0.5) * (0.5 if b == c else 1) if b + c else 0.0
    assert pytest.approx(exact, abs=1e-12) == stats.mcnemar_exact(b, c)
    assert pytest.approx(exact - here, abs=1e-12) == stats.mcnemar_midp(b, c)
