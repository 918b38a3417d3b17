"""Equivalence: is a difference smaller than a margin? Two one-sided tests (TOST)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

from harness.tables import stats

LEVEL: Final = 0.05
Verdict = Literal["same", "other", "open"]
"""Within the margin; beyond it; or the numbers do not say."""


@dataclass(frozen=True, slots=True)
class Equivalence:
    """What two one-sided tests came to.

    Attributes:
        pvalue: that of the hypothesis that the difference is as large as the margin, or larger.
        interval: the 90 % interval of the difference: within the margin exactly if p is below 0.05.
        margin: the largest difference that does not matter.
    """

    pvalue: float
    interval: stats.Interval
    margin: float

    @property
    def verdict(self) -> Verdict:
        """`same` if p is below 0.05, `other` if the 90 % interval lies beyond the margin."""
        if self.pvalue < LEVEL:
            return "same"
        low, high = self.interval
        return "other" if low > self.margin or high < -self.margin else "open"


def tost(difference: float, stderr: float, df: float, margin: float) -> Equivalence:
    """Two one-sided t tests (Schuirmann, 1987): the larger p-value of "at most −margin" and "at least margin".

    Args:
        difference: the estimate.
        stderr: its standard error, above 0.
        df: degrees of freedom of the standard error; infinite for a normal law.
        margin: the largest difference that does not matter.
    """
    from scipy.special import ndtr, stdtr  # without scipy.stats, which takes a second to import

    nearest = (abs(difference) - margin) / stderr
    pvalue = float(stdtr(df, nearest) if math.isfinite(df) else ndtr(nearest))
    half = stats.t_quantile(min(df, 1e9), 1 - LEVEL) * stderr
    return Equivalence(pvalue, (difference - half, difference + half), margin)
