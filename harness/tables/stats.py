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
from typing import Final, Literal

from harness.api import UNBOUNDED, Statistic

Interval = tuple[float, float]
"""The ends of a confidence interval."""
IntervalMethod = Literal["wilson", "effective", "t", "fieller"]
"""Wilson's interval of zeros and ones, Wilson's formula at the effective sample size, Student's t interval, or that of
Fieller, of a ratio."""
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
    low, high = _score(successes / n, n, _normal_quantile(level))
    # At the ends the bound is exactly 0 or 1; the formula misses it by a rounding error.
    return 0.0 if successes == 0 else low, 1.0 if successes == n else high


def _normal_quantile(level: float) -> float:
    return statistics.NormalDist().inv_cdf((1 + level) / 2)


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
        stderr: its standard error; None where no two clusters can be compared.
        n: how many observations there are.
        clusters: how many clusters they are in.
        df: degrees of freedom of the standard error.
        effective_n: how many observations of equal weight say as much: (Σw)²/Σw² (Kish, 1965), of `n` at most.
        effective_clusters: the same of clusters.
        borrowed: whether some strata have a single cluster, or are of unequal sizes and some have equal numbers, so
            that how much these vary is known from the others alone.
    """

    value: float | None
    stderr: float | None
    n: int
    clusters: int
    df: float
    effective_n: float = 0.0
    effective_clusters: float = 0.0
    borrowed: bool = False


_PRIOR: Final = 3.0
"""As so many degrees of freedom the variance of all strata counts in that of each; `benchmarks/intervals.py` has the
coverage that it gives."""


def clustered(strata: Iterable[Stratum]) -> ClusteredMean:
    """The mean of the strata's means, with a standard error that takes clusters as independent, not observations.

    With one stratum and clusters of one size this is the clustered standard error of Miller (2024), "Adding error bars
    to evals", Section 2.2, times √(G/(G − 1)) for G clusters; with one observation a cluster it is that of `mean`.
    Strata are conditions, which are fixed: each has its own mean. With one observation a cluster and strata of one size
    the error is that of `mean_of_conditions`; a cluster that spans strata adds up over them before it is squared.
    Strata without observations are left out.

    Few clusters do not say how much they vary, and may agree by chance. So a stratum's variance is a mean of its own,
    with its degrees of freedom, and that of all strata, with three: (ν·s² + 3·s₀²)/(ν + 3) (Smyth, 2004, "Linear models
    and empirical Bayes methods"; three is a choice). ν + 1 is the effective number of the stratum's clusters, so one
    cluster that outweighs the others does not vouch for itself. s₀² is the pooled variance within strata; those with a
    single cluster count as one stratum in it (collapsed strata; Cochran, 1977, "Sampling techniques", Section 5A.12).
    The degrees of freedom are Satterthwaite's (1946).
    """
    filled = [list(stratum) for stratum in strata if stratum]
    if not filled:
        return ClusteredMean(None, None, 0, 0, 0)
    n = sum(map(len, filled))
    if len(filled) == 1 and len({cluster for cluster, _ in filled[0]}) == n:
        plain = mean([x for _, x in filled[0]])
        return ClusteredMean(plain.value, plain.stderr, n, n, max(n - 1, 1), n, n)
    parts = [_by_cluster(stratum) for stratum in filled]
    means = [statistics.fmean(x for _, x in stratum) for stratum in filled]
    value, every = statistics.fmean(means), {cluster for part in parts for cluster in part}
    alone = len({cluster for part in parts if len(part) == 1 for cluster in part})
    common = statistics.fmean(m for m, part in zip(means, parts, strict=True) if len(part) == 1) if alone else 0.0
    most = sum(len(part) - 1 for part in parts) + max(0, alone - 1)
    most = min(most, len(every) - 1)  # as many clusters as may differ from the means
    own, lent, weights = (dict[Hashable, list[float]]() for _ in range(3))
    around = dict[Hashable, list[tuple[float, float]]]()  # of each cluster: weight, distance from the stratum's mean
    squares = list[tuple[float, float]]()  # of each stratum's own variance: what it adds, its degrees of freedom
    for stratum, part, middle in zip(filled, parts, means, strict=True):
        shares = {cluster: len(xs) / len(stratum) for cluster, xs in part.items()}
        inner = {cluster: statistics.fmean(xs) for cluster, xs in part.items()}
        center, peers = (statistics.fmean(inner.values()), len(part)) if len(part) > 1 else (common, alone)
        free = 1 / math.fsum(x * x for x in shares.values()) - 1 if len(part) > 1 else 0.0
        trust = free / (free + _PRIOR)
        unbiased = math.sqrt(peers / (peers - 1)) if peers > 1 else 0.0
        for cluster, share in shares.items():
            weight = share / len(filled)
            weights.setdefault(cluster, []).append(weight)
            if unbiased:
                around.setdefault(cluster, []).append((weight, unbiased * (inner[cluster] - center)))
            own.setdefault(cluster, []).append(math.sqrt(trust) * unbiased * weight * (inner[cluster] - middle))
            lent.setdefault(cluster, []).append(math.sqrt(1 - trust) * weight)
        squares.append((math.fsum(own[cluster][-1] ** 2 for cluster in part), free))
    weight_of = {cluster: math.fsum(found) for cluster, found in weights.items()}
    effective_clusters = round(1 / math.fsum(x * x for x in weight_of.values()), 9)  # 12 of equal weight are 12
    effective_n = len(filled) ** 2 / math.fsum(1 / len(stratum) for stratum in filled)
    counts = n, len(every)
    if most < 1:
        return ClusteredMean(value, None, *counts, 1, effective_n, effective_clusters)
    pooled = statistics.fmean(
        (math.fsum(w * x for w, x in found) / math.fsum(w for w, _ in found)) ** 2 for found in around.values()
    )
    first = math.fsum(math.fsum(found) ** 2 for found in own.values())
    second = pooled * math.fsum(math.fsum(found) ** 2 for found in lent.values())
    stderr, df = math.sqrt(first + second), _satterthwaite(first, squares, second, most)
    if is_rounding(stderr, [x for stratum in filled for _, x in stratum]):
        stderr = 0.0
    frees, equal = [free for _, free in squares], any(len({x for _, x in stratum}) == 1 for stratum in filled)
    borrowed = bool(stderr) and len(filled) > 1 and (not min(frees) or (equal and max(frees) - min(frees) > 1e-9))
    return ClusteredMean(value, stderr, *counts, df, effective_n, effective_clusters, borrowed)


def _by_cluster(stratum: Stratum) -> dict[Hashable, list[float]]:
    found = dict[Hashable, list[float]]()
    for cluster, x in stratum:
        found.setdefault(cluster, []).append(x)
    return found


def _satterthwaite(first: float, squares: Sequence[tuple[float, float]], second: float, most: int) -> float:
    """Degrees of freedom of a sum of variances, from 1 to `most`: of `first`, which strata add up to, and `second`."""
    total, added = first + second, math.fsum(x for x, _ in squares)
    if not total or not added:
        return most
    inverse = math.fsum(x * x / free for x, free in squares if free) / added**2
    return max(1.0, min(most, 1 / ((first / total) ** 2 * inverse + (second / total) ** 2 / most)))


def clustered_error(stat: Statistic, strata: Sequence[Stratum]) -> Statistic:
    """The statistic with the standard error of `clustered`, where it is the mean of the strata's means.

    As it is where its value is another one (a total, a score of all observations together).
    """
    spread = clustered(strata)
    if not is_mean(stat.value, spread):
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
    binary = within == (0, 1) and all(x in (0, 1) for x in values)
    if binary and stat.clusters == stat.n and len(filled) in (1, stat.n):
        return _by_wilson(values.count(1), stat.n)
    if stat.stderr is None:
        return None
    if not binary and is_rounding(stat.stderr, values):
        return None
    if binary and stat.value in (0, 1):
        return _score(stat.value, stat.effective_clusters, _normal_quantile(0.95)), "wilson"
    # Clusters that happen to agree are no more observations than there are.
    return interval_around(stat.value, stat.stderr, stat.df, within, most=stat.effective_n if binary else math.inf)


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


def fieller(above: Stratum, below: Stratum) -> Interval | None:
    """95 % interval of the ratio of two means of the same observations, by Fieller's theorem (1954), clustered.

    Its ends are those ratios r at which the mean of a − r·b is just not different from 0: so they are where the ratio
    can be, and not the same distance from it. Where no number is negative, none is below 0.

    Args:
        above, below: numbers a and b of the observations, in one order, each with its cluster.

    Returns:
        None if the interval has no end, as `below` may be 0 on average, and if the ratio of the numbers does not vary.
    """
    tops, bottoms = clustered([above]), clustered([below])
    if not tops.value or not bottoms.value or tops.stderr is None or bottoms.stderr is None:
        return None
    pairs = [(c, x / tops.value, y / bottoms.value) for (c, x), (_, y) in zip(above, below, strict=True)]
    first, second, apart = (
        (clustered([[(c, s * x + t * y) for c, x, y in pairs]]).stderr or 0.0) ** 2
        for s, t in ((1, 0), (0, 1), (1, -1))
    )
    if is_rounding(math.sqrt(apart), [x for _, x, _ in pairs]):
        return None
    square = t_quantile(bottoms.df) ** 2
    top, bottom = 1 - square * first, 1 - square * second
    middle = 1 - square * (first + second - apart) / 2
    if bottom <= 0 or (inner := middle * middle - top * bottom) < 0:
        return None
    ratio = tops.value / bottoms.value
    ends = sorted(ratio * (middle + sign * math.sqrt(inner)) / bottom for sign in (-1, 1))
    positive = all(x >= 0 for _, x in (*above, *below))
    return (max(0.0, ends[0]) if positive else ends[0]), ends[1]


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
