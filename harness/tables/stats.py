"""Numbers with their uncertainty: means, intervals and tests.

Means follow AgentsNet, Appendix C, eq. (1) to (4), which follow Miller (2024), "Adding error bars to evals".
Standard errors use ddof = 1. Everything is defined for every finite input: what has no value is None, never NaN,
so a result can always be written as JSON. scipy is imported only by the functions that use it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.api import UNBOUNDED, Statistic

Interval = tuple[float, float]
"""The ends of a confidence interval."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a test of "no difference" between two samples came to.

    Attributes:
        difference: mean of the first sample minus mean of the second.
        statistic: the test's own statistic (t, or a count); None where undefined.
        pvalue: two-sided; None where undefined (fewer than two observations, no variance but that of rounding).
        df: degrees of freedom of a t test.
    """

    difference: float | None
    statistic: float | None
    pvalue: float | None
    df: float | None = None


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

    Conditions without a value are left out; say so where the result is shown. The error is None as soon as one
    condition has none (a single observation): it cannot be propagated. `n` counts observations, not conditions.
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
    z = statistics.NormalDist().inv_cdf((1 + level) / 2)
    rate = successes / n
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    # At the ends the bound is exactly 0 or 1; the formula misses it by a rounding error.
    return 0.0 if successes == 0 else centre - half, 1.0 if successes == n else centre + half


def t_interval(
    numbers: Sequence[float], level: float = 0.95, *, within: tuple[float, float] = UNBOUNDED
) -> Interval | None:
    """Student t interval of the mean, cut to where a mean can lie at all (a share: 0 to 1), which costs no coverage;
    None below two observations."""
    stat = mean(numbers)
    if stat.value is None or stat.stderr is None:
        return None
    from scipy.stats import t

    half = float(t.ppf((1 + level) / 2, stat.n - 1)) * stat.stderr
    low, high = within
    return max(low, stat.value - half), min(high, stat.value + half)


# ------------------------------------------------------------------------------------------- tests


def welch(a: Sequence[float], b: Sequence[float]) -> Comparison:
    """Welch's unequal-variances t test of two independent samples."""
    first, second = mean(a), mean(b)
    difference = None if first.value is None or second.value is None else first.value - second.value
    # Not scipy's ttest_ind: it warns or gives NaN for constant samples and single observations.
    if first.stderr is None or second.stderr is None or difference is None:
        return Comparison(difference, None, None)
    stderr = math.hypot(first.stderr, second.stderr)
    if _is_rounding(stderr, (*a, *b)):
        return Comparison(difference, None, None)
    from scipy.stats import t

    score = difference / stderr
    shares = [(s.stderr or 0.0) / stderr for s in (first, second)]  # Welch–Satterthwaite, scaled against underflow
    df = 1 / sum(share**4 / (s.n - 1) for share, s in zip(shares, (first, second), strict=True))
    return Comparison(difference, score, float(2 * t.sf(abs(score), df)), df)


def paired_t(a: Sequence[float], b: Sequence[float]) -> Comparison:
    """Student's t test of the differences a[i] − b[i], e.g. two models on the same cases.

    Raises:
        ValueError: if the samples differ in length.
    """
    stat = mean([float(x) - float(y) for x, y in zip(a, b, strict=True)])
    if stat.stderr is None or stat.value is None or _is_rounding(stat.stderr, (*a, *b)):
        return Comparison(stat.value, None, None)
    from scipy.stats import t

    score = stat.value / stat.stderr
    return Comparison(stat.value, score, float(2 * t.sf(abs(score), stat.n - 1)), stat.n - 1)


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


def _is_rounding(stderr: float, numbers: Sequence[float]) -> bool:
    """Whether what varies is only how numbers of this size are rounded: 0.3 − 0.1 and 0.4 − 0.2 are one difference."""
    return stderr <= 1e-14 * max(map(abs, numbers))
