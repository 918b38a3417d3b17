"""Numbers with their uncertainty: means, intervals and tests.

Means follow AgentsNet, Appendix C, eq. (1) to (4), which follow Miller (2024), "Adding error bars to evals".
Standard errors use ddof = 1; if observations come in clusters, standard errors are clustered. Everything is defined for
every finite input: an undefined value is None, never NaN, so a result can always be written as JSON. scipy is imported
only by the functions that use it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from harness.api import UNBOUNDED, Statistic

Interval = tuple[float, float]
"""The ends of a confidence interval."""
IntervalMethod = Literal["wilson", "effective", "t"]
"""Wilson's interval of zeros and ones, Wilson's formula at the effective sample size, or Student's t interval."""
Stratum = Sequence[tuple[Hashable, float]]
"""The observations of one condition, each with the cluster it belongs to."""


def mean(numbers: Sequence[float]) -> Statistic:
    """Mean and standard error of the mean σ/√N with ddof = 1 (eq. 1 and 2).

    The sums are exact before rounding, so the order of the numbers never shows in the result.
    """
    n = len(numbers)
    stderr = statistics.stdev(numbers) / math.sqrt(n) if n > 1 else None
    return Statistic(statistics.fmean(numbers) if n else None, stderr, n)


def std(numbers: Sequence[float]) -> float | None:
    """Population standard deviation (ddof = 0), as DPBench reports it (Table 4); 0 for one number, None for none."""
    return statistics.pstdev(numbers) if numbers else None


def mean_of_conditions(conditions: Iterable[Statistic]) -> Statistic:
    """Plain mean over conditions, errors combined in quadrature (eq. 3 and 4).

    The mean leaves out conditions without a value; callers must show that. The error is None if any condition has
    none (a single observation): nothing can be propagated then. `n` counts observations, not conditions.
    """
    complete = [(c.value, c.stderr, c.n) for c in conditions if c.value is not None]
    if not complete:
        return Statistic(None, None, 0)
    errors = [stderr for _, stderr, _ in complete if stderr is not None]
    stderr = math.hypot(*errors) / len(complete) if len(errors) == len(complete) else None
    return Statistic(statistics.fmean(value for value, _, _ in complete), stderr, sum(n for _, _, n in complete))


# --------------------------------------------------------------------------------------- intervals


def wilson(successes: int, n: int, level: float = 0.95) -> Interval | None:
    """Wilson score interval of a rate; honest at 0 and 1, where the standard error is 0. None if n = 0.

    Raises:
        ValueError: unless 0 ≤ successes ≤ n.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}")
    if n == 0:
        return None
    low, high = _score(successes / n, n, statistics.NormalDist().inv_cdf((1 + level) / 2))
    # At the ends the bound is exactly 0 or 1; the formula misses it by a rounding error.
    return 0.0 if successes == 0 else low, 1.0 if successes == n else high


def _score(share: float, n: float, quantile: float) -> Interval:
    """Wilson's formula for a share of n observations."""
    center = (share + quantile**2 / (2 * n)) / (1 + quantile**2 / n)
    half = quantile / (1 + quantile**2 / n) * math.sqrt(share * (1 - share) / n + quantile**2 / (4 * n * n))
    return max(0.0, min(share, center - half)), min(1.0, max(share, center + half))


@dataclass(frozen=True, slots=True)
class ClusteredMean:
    """A mean over strata with its clustered standard error.

    Attributes:
        value: the mean of the strata's means; None without observations.
        stderr: its standard error; None with a single cluster.
        n: how many observations there are.
        clusters: how many clusters they are in.
        df: degrees of freedom of the standard error.
        one_sample: whether the strata count as one sample, since some of them have a single cluster.
    """

    value: float | None
    stderr: float | None
    n: int
    clusters: int
    df: int
    one_sample: bool = False


def clustered(strata: Iterable[Stratum]) -> ClusteredMean:
    """The mean of the strata's means, with a standard error that takes clusters as independent, not observations.

    With one stratum this is the clustered standard error of Miller (2024), "Adding error bars to evals", Section 2.2,
    times √(G/(G − 1)) for G clusters; with one observation a cluster it is that of `mean`. Strata are conditions, which
    are fixed: each has its own mean. With one observation a cluster the error is then that of `mean_of_conditions`; a
    cluster that spans strata adds up over them before it is squared. Strata without observations are left out.

    A single cluster does not say how much it varies. Where some stratum has no more, all strata count as one sample
    around their common mean, which gives the error of the pooled observations where strata are of equal size. It is
    rather too large than too small, since it includes how strata differ (collapsed strata; Cochran, 1977, "Sampling
    techniques", Section 5A.12).
    """
    filled = [list(stratum) for stratum in strata if stratum]
    if not filled:
        return ClusteredMean(None, None, 0, 0, 0)
    counts = [len({cluster for cluster, _ in stratum}) for stratum in filled]
    means = [statistics.fmean(x for _, x in stratum) for stratum in filled]
    value, every = statistics.fmean(means), len({cluster for stratum in filled for cluster, _ in stratum})
    one_sample = len(filled) > 1 and min(counts) == 1
    sums = dict[Hashable, list[float]]()
    for stratum, own, within in zip(filled, means, counts, strict=True):
        center, count = (value, every) if one_sample else (own, within)
        scale = math.sqrt(count / max(count - 1, 1)) / len(stratum) / len(filled)
        for cluster, x in stratum:
            sums.setdefault(cluster, []).append((x - center) * scale)
    certain = every > 1 if one_sample else min(counts) > 1
    stderr = math.hypot(*map(math.fsum, sums.values())) if certain else None
    df = every - 1 if one_sample else min(sum(counts) - len(counts), every - 1)
    return ClusteredMean(value, stderr, sum(map(len, filled)), every, max(df, 1), one_sample)


def clustered_error(stat: Statistic, strata: Sequence[Stratum]) -> Statistic:
    """The statistic with the standard error of `clustered`, where it is the mean of the strata's means.

    As it is where every observation is a cluster of its own and all strata have several, and where its value is
    another one (a total, a score of all observations together).
    """
    spread = clustered(strata)
    if not is_mean(stat.value, spread) or (spread.clusters == spread.n and not spread.one_sample):
        return stat
    return Statistic(stat.value, spread.stderr, stat.n)


def is_mean(value: float | None, spread: ClusteredMean) -> bool:
    """Whether a statistic's value is the mean of the observations behind `spread`."""
    return value is not None and spread.value is not None and math.isclose(value, spread.value, abs_tol=1e-12)


def interval(strata: Iterable[Stratum], within: tuple[float, float] = UNBOUNDED) -> Interval | None:
    """The ends of `interval_by`."""
    found = interval_by(strata, within)
    return found and found[0]


def interval_by(
    strata: Iterable[Stratum], within: tuple[float, float] = UNBOUNDED
) -> tuple[Interval, IntervalMethod] | None:
    """95 % confidence interval of the mean of the strata's means, never beyond what is possible; and its method.

    - Zeros and ones between the bounds 0 and 1, one observation a cluster, one stratum: Wilson's score interval.
    - Other numbers between two bounds, and zeros and ones in clusters: Wilson's formula at the effective sample size
      n* = p(1 − p)/SE², which the clustered standard error gives, with the quantile of t (Korn and Graubard, 1998; Dean
      and Pagano, 2015). `benchmarks/intervals.py` compares its coverage with that of t intervals and of the bootstrap,
      which both cover less at small n.
    - Other numbers: Student's t interval, cut at a bound if there is one.

    None if the numbers do not say how sure they are: a single cluster, or numbers that are all equal (unless they
    are zeros or ones between these bounds, whose variance their mean decides).

    Args:
        strata: the observations, condition by condition; one stratum if they are pooled.
        within: the bounds of a single number (`harness.tables.scores.bounds_of`).
    """
    filled = [list(stratum) for stratum in strata if stratum]
    stat, values = clustered(filled), [x for stratum in filled for _, x in stratum]
    if stat.value is None:
        return None
    low, high = within
    binary = within == (0, 1) and all(x in (0, 1) for x in values)
    equal = len({len(stratum) for stratum in filled}) == 1
    if binary and (len(filled) == 1 or (stat.one_sample and equal)) and stat.clusters == stat.n:
        return _by_wilson(values.count(1), stat.n)
    if stat.stderr is None:
        return None
    if not binary and is_rounding(stat.stderr, values):
        return None
    if binary and stat.value in (0, 1):
        return _by_wilson(round(stat.value) * stat.clusters, stat.clusters)
    # Clusters that happen to agree are no more observations than there are.
    return interval_around(stat.value, stat.stderr, stat.df, (low, high), most=stat.n if binary else math.inf)


def interval_around(
    value: float, stderr: float, df: float, within: tuple[float, float], *, most: float = math.inf
) -> tuple[Interval, IntervalMethod] | None:
    """The interval of a mean that has this standard error, and its method: as `interval_by`, for numbers that vary.

    Args:
        value: the mean, within the bounds.
        stderr: its standard error.
        df: degrees of freedom of the standard error.
        within: the bounds of a single number.
        most: how many observations the effective sample size is at most.
    """
    (low, high), quantile = within, t_quantile(df)
    if not math.isfinite(high - low):
        half = quantile * stderr
        return (max(low, value - half), min(high, value + half)), "t"
    share, error = (value - low) / (high - low), stderr / (high - low)
    size = min(share * (1 - share) / error / error if error else math.inf, most)
    if not size:  # too small a share for a square
        return None
    below, above = _score(share, size, quantile)
    return (low + below * (high - low), low + above * (high - low)), "effective"


def _by_wilson(successes: int, n: int) -> tuple[Interval, IntervalMethod] | None:
    found = wilson(successes, n)
    return found and (found, "wilson")


@lru_cache(maxsize=1024)
def t_quantile(df: float, level: float = 0.975) -> float:
    """Quantile of Student's t."""
    from scipy.special import stdtrit  # `scipy.stats.t.ppf`, without the second that importing scipy.stats takes

    return float(stdtrit(df, level))


# ------------------------------------------------------------------------------------------- tests


def holm(pvalues: Sequence[float]) -> list[float]:
    """Holm–Bonferroni adjusted p-values, in the order given (Holm, 1979).

    Raises:
        ValueError: for a p-value outside [0, 1].
    """
    if any(not 0 <= p <= 1 for p in pvalues):
        raise ValueError("p-values lie in [0, 1]")
    adjusted = [0.0] * len(pvalues)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(pvalues)), key=pvalues.__getitem__)):
        highest = max(highest, min(1.0, (len(pvalues) - rank) * pvalues[index]))
        adjusted[index] = highest
    return adjusted


def benjamini_hochberg(pvalues: Sequence[float]) -> list[float]:
    """Adjusted p-values in the order given: those below q have a false discovery rate of q (Benjamini and Hochberg,
    1995); for independent tests, and those that are positively dependent.

    Raises:
        ValueError: for a p-value outside [0, 1].
    """
    if any(not 0 <= p <= 1 for p in pvalues):
        raise ValueError("p-values lie in [0, 1]")
    adjusted, least = [1.0] * len(pvalues), 1.0
    for rank, index in reversed([*enumerate(sorted(range(len(pvalues)), key=pvalues.__getitem__), 1)]):
        least = min(least, pvalues[index] * len(pvalues) / rank)
        adjusted[index] = least
    return adjusted


def is_rounding(stderr: float, numbers: Sequence[float]) -> bool:
    """Whether what varies is only how numbers of this size are rounded: 0.3 − 0.1 and 0.4 − 0.2 are one difference."""
    return stderr <= 1e-14 * max(map(abs, numbers))
