"""Welch's t test of two means, with clustered errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.tables.stats import Stratum, clustered, is_rounding


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a test of "no difference" between two samples came to.

    Attributes:
        difference: mean of the first sample minus mean of the second.
        statistic: the test's own statistic (t, or a count); None if undefined.
        pvalue: two-sided; None if undefined (fewer than two observations, no variance but that of rounding).
        df: degrees of freedom of a t test.
    """

    difference: float | None
    statistic: float | None
    pvalue: float | None
    df: float | None = None


def welch_test(a: Sequence[Stratum], b: Sequence[Stratum]) -> Comparison:
    """Welch's t test of two means over strata, with clustered errors and degrees of freedom."""
    first, second = clustered(a), clustered(b)
    difference = None if first.value is None or second.value is None else first.value - second.value
    # Not scipy's ttest_ind: it warns or gives NaN for constant samples and single observations.
    if first.stderr is None or second.stderr is None or difference is None:
        return Comparison(difference, None, None)
    stderr = math.hypot(first.stderr, second.stderr)
    if is_rounding(stderr, [x for stratum in (*a, *b) for _, x in stratum]):
        return Comparison(difference, None, None)
    from scipy.special import stdtr

    score = difference / stderr
    shares = [(s.stderr or 0.0) / stderr for s in (first, second)]  # Welch–Satterthwaite, scaled against underflow
    df = 1 / sum(share**4 / s.df for share, s in zip(shares, (first, second), strict=True))
    return Comparison(difference, score, float(2 * stdtr(df, -abs(score))), df)
