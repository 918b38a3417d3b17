"""Agreement of raters: Cohen's kappa, weighted kappa, Krippendorff's alpha. Each takes linear time."""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Literal

from harness.tables.stats import Interval

Pair = tuple[float, float]
Level = Literal["nominal", "ordinal", "interval"]


def kappa(pairs: Sequence[Pair]) -> float | None:
    """Cohen's kappa of two raters: (p_o − p_e) / (1 − p_e), with p_o the share of equal ratings and p_e what equal
    marginals alone would give (Cohen, 1960, "A coefficient of agreement for nominal scales").

    None without pairs, and where both raters give one and the same value: there is nothing to agree on then.
    """
    if not pairs:
        return None
    first, second = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    observed = sum(a == b for a, b in pairs) / len(pairs)
    chance = math.fsum(count * second[value] for value, count in first.items()) / len(pairs) ** 2
    return None if chance == 1 else (observed - chance) / (1 - chance)


def weighted_kappa(pairs: Sequence[Pair]) -> float | None:
    """Cohen's kappa with quadratic weights: a disagreement counts by the square of the difference (Cohen, 1968,
    "Weighted kappa"; Fleiss and Cohen, 1973).

    The mean squared difference by chance is σ₁² + σ₂² + (μ₁ − μ₂)², so that values need no categories. None as `kappa`.
    """
    if not pairs:
        return None
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    means = statistics.fmean(first), statistics.fmean(second)
    chance = _variance(first, means[0]) + _variance(second, means[1]) + (means[0] - means[1]) ** 2
    observed = math.fsum((a - b) ** 2 for a, b in pairs) / len(pairs)
    return None if chance <= 1e-15 else 1 - observed / chance


def alpha(units: Iterable[Sequence[float]], level: Level = "interval") -> float | None:
    """Krippendorff's alpha: 1 − D_o / D_e, for any number of raters, with ratings missing (Krippendorff, 2011,
    "Computing Krippendorff's Alpha-Reliability").

    Args:
        units: the ratings of each unit, of those raters that rated it; a unit with a single rating counts for nothing.
        level: what a difference is: 0 or 1; of midranks, squared; of values, squared.

    Returns:
        None without two ratings of a unit, and where all ratings are equal.
    """
    paired = [list(unit) for unit in units if len(unit) > 1]
    every = [value for unit in paired for value in unit]
    n = len(every)
    if not n:
        return None
    if level == "ordinal":
        ranks, below = dict[float, float](), 0
        for value, count in sorted(Counter(every).items()):
            ranks[value], below = below + count / 2, below + count
        paired = [[ranks[value] for value in unit] for unit in paired]
        every = [ranks[value] for value in every]
    apart = _differing if level == "nominal" else _squared
    observed = math.fsum(apart(unit) / (len(unit) - 1) for unit in paired) / n
    chance = apart(every) / (n * (n - 1))
    return None if chance <= 1e-15 else 1 - observed / chance


def _differing(values: Sequence[float]) -> float:
    """How many ordered pairs of the values differ."""
    return len(values) ** 2 - sum(count * count for count in Counter(values).values())


def _squared(values: Sequence[float]) -> float:
    """The sum of squared differences over all ordered pairs of the values."""
    return 2 * len(values) ** 2 * _variance(values, statistics.fmean(values))


def _variance(values: Sequence[float], mean: float) -> float:
    return math.fsum((value - mean) ** 2 for value in values) / len(values)


RESAMPLES = 1000
_MAX_RATINGS = 2_000_000
"""Ratings that all resamples together have at most: of more pairs there are fewer resamples, but at least 100."""


def bootstrapped(
    pairs: Sequence[Pair],
    statistic: Callable[[Sequence[Pair]], float | None],
    clusters: Sequence[Hashable] = (),
) -> Interval | None:
    """A 95 % percentile interval of a statistic over resampled pairs (Efron, 1979), always the same for the same pairs.

    `clusters`: of each pair what is one observation; these are resampled as a whole. None for fewer than ten of them,
    and where a resample often has no value.
    """
    groups: dict[Hashable, list[Pair]] = {}
    for i, pair in enumerate(pairs):
        groups.setdefault(clusters[i] if clusters else i, []).append(pair)
    whole = [*groups.values()]
    if len(whole) < 10:
        return None
    rng = random.Random(0)
    count = max(100, min(RESAMPLES, _MAX_RATINGS // len(pairs)))
    drawn = (statistic([pair for group in rng.choices(whole, k=len(whole)) for pair in group]) for _ in range(count))
    values = sorted(value for value in drawn if value is not None)
    if len(values) < 0.9 * count:
        return None
    return values[round(0.025 * (len(values) - 1))], values[round(0.975 * (len(values) - 1))]
