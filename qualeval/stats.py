"""Intervals and tests for counts of right answers, and rounding for print. Pure: no files at all.

Shares run from 0 to 1, differences from -1 to 1. Every function names its paper, and under
"ValueError" what it refuses; the message begins with the argument's name. scipy is imported inside
the functions that need it and scipy.stats not at all: it takes a second and 70 MB, at the end of
every run.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral, Rational
from statistics import NormalDist

CONFIDENCE = 0.95  # two-sided, of every published interval
Z = NormalDist().inv_cdf(0.975)  # the same, as the planning functions (`mde_*`) need it
Z_POWER = NormalDist().inv_cdf(0.80)  # their power: four of five true changes are noticed
DRAWS = 9_999  # redraws of the question bootstrap
SEED = 42  # of those redraws: the same scores have the same interval
MANY_QUESTIONS = 100  # from here on their mean is normal enough for t


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided confidence interval, with the method's name so that a reader can check it."""

    low: float
    high: float
    method: str
    confidence: float


@dataclass(frozen=True, slots=True)
class ClusteredMean:
    """A mean of question scores; `between` + `within` is its standard error squared.

    More questions shrink both parts, more repeats only `within`; None where one has no repeat.
    """

    mean: float
    standard_error: float
    interval: Interval
    between: float | None
    within: float | None


def wilson(right: int, n: int, confidence: float = CONFIDENCE) -> Interval:
    """Wilson's score interval of the share `right / n`, without continuity correction.

    Holds the share, is not centred on it; low is exactly 0 for none right, high exactly 1 for all.
    Wilson 1927, JASA 22:209; Newcombe 1998, Statistics in Medicine 17:857, method 3. ValueError:
    n < 1, right outside 0..n, confidence outside 0.5..0.9999.
    """
    _check_part(right, n)
    _check_between("confidence", confidence, 0.5, 0.9999)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = right / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    arm = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = 0.0 if right == 0 else max(0.0, centre - arm)
    high = 1.0 if right == n else min(1.0, centre + arm)
    return Interval(low, high, "wilson", confidence)


def half_width(interval: Interval) -> float:
    """Half the interval's width: the printed margin. Share + margin is not the upper end."""
    return (interval.high - interval.low) / 2


def newcombe_difference(k1: int, n1: int, k2: int, n2: int) -> Interval:
    """Interval of the difference of two separate shares, the first minus the second: k1/n1 - k2/n2.

    For different lists, or when only counts are known; on one list `tango` is sharper. Newcombe
    1998, Statistics in Medicine 17:873, method 10. ValueError: as `wilson`.
    """
    _check_part(k1, n1, ("k1", "n1"))
    _check_part(k2, n2, ("k2", "n2"))
    first, second = wilson(k1, n1), wilson(k2, n2)
    p1, p2, gap = k1 / n1, k2 / n2, k1 / n1 - k2 / n2
    below = math.hypot(p1 - first.low, second.high - p2)
    above = math.hypot(first.high - p1, p2 - second.low)
    return Interval(max(-1.0, gap - below), min(1.0, gap + above), "newcombe-10", CONFIDENCE)


def tango(a: int, b: int, c: int, d: int, confidence: float = CONFIDENCE) -> Interval:
    """Score interval of the paired difference (c - b) / n on one list of n = a + b + c + d items.

    a: right in both runs, b: only in the first, c: only in the second, d: in neither. Above zero
    the second run is better; Tango's own tables give (b - c) / n. Zero lies inside exactly when
    McNemar's test without continuity correction does not reject. Tango 1998, Statistics in
    Medicine 17:891. ValueError: a count < 0, no item, confidence outside 0.5..0.9999.
    """
    _check_whole(0, a=a, b=b, c=c, d=d)
    n = a + b + c + d
    _check_whole(1, **{"a + b + c + d": n})
    _check_between("confidence", confidence, 0.5, 0.9999)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    return Interval(_tango_low(c, b, n, z), -_tango_low(b, c, n, z), "tango", confidence)


def _tango_low(gains: int, losses: int, n: int, z: float) -> float:
    """The difference below (gains - losses) / n whose score statistic is exactly z."""
    from scipy.optimize import brentq

    if losses == n:
        return -1.0

    def distance(delta: float) -> float:
        """The score statistic's numerator minus z standard errors at `delta` (no division)."""
        # q, the most likely share of losses: the upper root of 2n q^2 + linear q + constant.
        linear = (2 * n - gains + losses) * delta - gains - losses
        constant = -losses * delta * (1 - delta)
        q = (math.sqrt(max(0.0, linear**2 - 8 * n * constant)) - linear) / (4 * n)
        variance = max(0.0, 2 * q + delta * (1 - delta))
        return gains - losses - n * delta - z * math.sqrt(n * variance)

    # At the estimate itself the variance can be 0 (b = c = 0, or all gained), and the estimate
    # would pass for the root: stop a hair below it.
    just_below = (gains - losses) / n - 1e-9
    return float(brentq(distance, -1.0, just_below, xtol=1e-12))


def mcnemar_exact(b: int, c: int) -> float:
    """Two-sided p of McNemar's exact test; b, c: items right only in the first, the second run.

    1 without any such item. McNemar 1947, Psychometrika 12:153. ValueError: a count < 0.
    """
    _check_whole(0, b=b, c=c)
    return min(1.0, 2 * _chance_of_at_most(min(b, c), b + c))


def mcnemar_midp(b: int, c: int) -> float:
    """Two-sided mid-p of McNemar's test, never above the exact p, which is too careful.

    Held its level in 9,595 scenarios of Fagerland, Lydersen & Laake 2013, BMC Medical Research
    Methodology 13:91. ValueError: a count < 0.
    """
    exact = mcnemar_exact(b, c)
    if b + c == 0:
        return exact
    fewer, n = min(b, c), b + c
    below = _chance_of_at_most(fewer - 1, n) if fewer else 0.0
    chance_of_this_split = _chance_of_at_most(fewer, n) - below
    # An even split is its own mirror image and counts once, not twice.
    return exact - chance_of_this_split * (0.5 if b == c else 1)


def _chance_of_at_most(heads: int, n: int) -> float:
    """Chance of at most so many heads in n tosses of a fair coin."""
    from scipy.special import bdtr

    return float(bdtr(heads, n, 0.5)) if n else 1.0


def holm(pvalues: Sequence[float]) -> list[float]:
    """The p-values adjusted for being several, in the order given; never below the raw ones.

    Holm 1979, Scandinavian Journal of Statistics 6:65. ValueError: none at all, one outside 0..1.
    """
    if len(pvalues) == 0 or not all(0 <= p <= 1 for p in pvalues):
        raise ValueError(f"pvalues must be one number from 0 to 1 or more, not {pvalues}")
    adjusted = [0.0] * len(pvalues)
    largest = 0.0
    for done, place in enumerate(sorted(range(len(pvalues)), key=pvalues.__getitem__)):
        largest = max(largest, min(1.0, (len(pvalues) - done) * pvalues[place]))
        adjusted[place] = largest
    return adjusted


def clustered_mean(scores_by_question: Iterable[Sequence[float]]) -> ClusteredMean:
    """Mean of the questions' mean scores, its error clustered by question; t with Q - 1 df.

    One inner sequence a question, one score a repeat. The interval has no width when all questions
    score alike, and is not cut at 0 and 1, since paired differences have means too. Miller 2024,
    arXiv 2411.00640. ValueError: fewer than two questions, one without scores, NaN.
    """
    import numpy as np
    from scipy.special import stdtrit

    scores = _checked(scores_by_question, least=2)
    means = [float(np.mean(repeats)) for repeats in scores]
    mean, variance = float(np.mean(means)), float(np.var(means, ddof=1)) / len(scores)
    between = within = None
    if min(len(repeats) for repeats in scores) > 1:
        noise = [float(np.var(repeats, ddof=1)) / len(repeats) for repeats in scores]
        # By chance the repeats can differ more than the questions do: no part is negative.
        within = min(variance, sum(noise) / len(scores) ** 2)
        between = variance - within
    reach = float(stdtrit(len(scores) - 1, (1 + CONFIDENCE) / 2)) * math.sqrt(variance)
    interval = Interval(mean - reach, mean + reach, "t-clustered", CONFIDENCE)
    return ClusteredMean(mean, math.sqrt(variance), interval, between, within)


def question_bootstrap(scores_by_question: Iterable[Sequence[float]], seed: int) -> Interval:
    """Percentile interval of the mean score from redrawing whole questions; same seed, same ends.

    For fewer than 100 questions, or scores near 0 or 1, where t goes wrong. No width when all
    questions score alike. Efron 1979, Annals of Statistics 7:1. ValueError: no question, one
    without scores, NaN, seed < 0.
    """
    import numpy as np

    _check_whole(0, seed=seed)
    means = np.array([np.mean(repeats) for repeats in _checked(scores_by_question, least=1)])
    generator = np.random.default_rng(seed)
    # One draw at a time: a table of all draws would take a gigabyte for 12,000 questions.
    redrawn = [means[generator.integers(0, means.size, means.size)].mean() for _ in range(DRAWS)]
    low, high = np.quantile(redrawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(float(low), float(high), "bootstrap-percentile", CONFIDENCE)


def question_interval(scores_by_question: Sequence[Sequence[float]]) -> Interval:
    """Interval of the mean score of questions whose repeats hang together: `clustered_mean` where
    there are MANY_QUESTIONS, else `question_bootstrap`, always from the same seed. ValueError: as
    they.
    """
    if len(scores_by_question) >= MANY_QUESTIONS:
        return clustered_mean(scores_by_question).interval
    return question_bootstrap(scores_by_question, seed=SEED)


def mde_paired(n: int, discordant_share: float) -> float | None:
    """Smallest true difference that four of five paired comparisons of n items would show.

    None where that is more than the discordant share, which no difference can be. Connor 1987,
    Biometrics 43:207, n solved for it. ValueError: n < 1, discordant_share outside 0..1.
    """
    _check_whole(1, n=n)
    _check_between("discordant_share", discordant_share, 0, 1)
    square = n + Z_POWER**2 - Z**2
    if discordant_share == 0 or square < 0:
        return None
    top = Z * math.sqrt(n) + Z_POWER * math.sqrt(square)
    delta = math.sqrt(discordant_share) * top / (n + Z_POWER**2)
    return delta if delta <= discordant_share else None


def mde_unpaired(n: int, p: float) -> float | None:
    """Smallest true change from share p that four of five pairs of separate runs (n each) show.

    The change towards one half and beyond, the harder one to see; None where even all the way is
    too little. Fleiss, Levin & Paik 2003, Statistical Methods for Rates and Proportions, chapter 4.
    ValueError: n < 1, p outside 0..1.
    """
    from scipy.optimize import brentq

    _check_whole(1, n=n)
    _check_between("p", p, 0, 1)
    start = max(p, 1 - p)

    def surplus(delta: float) -> float:
        """What the change has, minus what it needs to be seen, both times sqrt(n)."""
        end, middle = start - delta, start - delta / 2
        pooled = math.sqrt(2 * middle * (1 - middle))
        separate = math.sqrt(start * (1 - start) + end * (1 - end))
        return delta * math.sqrt(n) - Z * pooled - Z_POWER * separate

    # From 1 the surplus of no change at all is 0 too: look for the root beyond it.
    return float(brentq(surplus, 1e-12, start)) if surplus(start) > 0 else None


def smallest_gate_margin(n: int, discordant_share: float) -> float:
    """Smallest margin that n items would prove in four of five comparisons if nothing changed.

    (Z + Z_POWER) * sqrt(discordant_share / n), Julious 2004, Statistics in Medicine 23:1921, and at
    least the reach of `tango` with none discordant, Z^2 / (n + Z^2). ValueError: as `mde_paired`.
    """
    _check_whole(1, n=n)
    _check_between("discordant_share", discordant_share, 0, 1)
    return max((Z + Z_POWER) * math.sqrt(discordant_share / n), Z**2 / (n + Z**2))


def percent(right: int, n: int, places: int = 1) -> str:
    """The share in percent: percent(259, 400) is "64.8". ValueError: as `wilson`, places < 0."""
    _check_part(right, n)
    return half_up(Fraction(100 * right, n), places)


def half_up(value: Fraction | int, places: int) -> str:
    """The value with `places` decimals, halves away from zero, never "-0".

    Exact, where a float is not quite the number it shows. ValueError: a float, places < 0.
    """
    if not isinstance(value, Rational):
        raise ValueError(f"value must be a fraction or an integer, not {value!r}")
    _check_whole(0, places=places)
    units = math.floor(abs(Fraction(value)) * 10**places + Fraction(1, 2))
    digits = str(units).zfill(places + 1)
    sign = "-" if value < 0 and units else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else sign + digits


def _check_whole(least: int, **counts: object) -> None:
    for name, count in counts.items():
        # Integral, not int: counts summed with numpy are welcome, NaN and 3.0 are not.
        if not isinstance(count, Integral) or count < least:
            raise ValueError(f"{name} must be a whole number, at least {least}, not {count!r}")


def _check_part(right: int, n: int, names: tuple[str, str] = ("right", "n")) -> None:
    _check_whole(1, **{names[1]: n})
    _check_whole(0, **{names[0]: right})
    if right > n:
        raise ValueError(f"{names[0]} must not be more than {names[1]}: {right} > {n}")


def _check_between(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise ValueError(f"{name} must be from {least} to {most}, not {value}")


def _checked(scores_by_question: Iterable[Sequence[float]], least: int) -> list[Sequence[float]]:
    scores = list(scores_by_question)
    if len(scores) < least:
        raise ValueError(f"scores_by_question must hold at least {least} questions")
    for place, repeats in enumerate(scores):
        if len(repeats) == 0 or not all(math.isfinite(score) for score in repeats):
            raise ValueError(f"scores_by_question: question {place} has no score, or NaN")
    return scores
