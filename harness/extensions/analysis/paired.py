"""Paired differences: one exact test of them, and an interval that says the same as the test."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from harness.api import Parts, linearize
from harness.tables import stats
from harness.tables.scores import EpisodeScore, all_parts, cluster_of, numbers

from .equivalence import Equivalence, tost

MIN_PAIRS: Final = 6
"""So many clusters must differ before the test can come to p < 0.05: the smallest p of n clusters is 2 / 2^n."""
_MAX_SUMS: Final = 2**18
"""How many different sums are listed."""
_GRID: Final = 2**15
_NORMAL: Final = 0.01
"""How far the law of the sum may be from the normal law where that takes its place."""


@dataclass(frozen=True, slots=True)
class PairedTest:
    """What paired differences came to.

    Attributes:
        difference: the mean of the strata's means; None without pairs.
        pvalue: of the sign-flip test, two-sided; None with fewer than two clusters, and where no cluster differs.
        interval: 95 % confidence interval of the difference; None if the numbers do not say how sure they are.
        detectable: the smallest difference that is found with 80 % power at 0.05; None if no possible difference is.
        n: how many pairs there are.
        clusters: how many clusters they are in.
        equivalence: whether the difference is within a margin; None without one, and where the numbers do not say.
    """

    difference: float | None
    pvalue: float | None
    interval: stats.Interval | None
    detectable: float | None
    n: int
    clusters: int
    equivalence: Equivalence | None = None


def minus(a: float, b: float) -> float:
    """a − b; 0 where they differ by rounding only."""
    return 0.0 if math.isclose(a, b, rel_tol=1e-12) else a - b


def paired(
    strata: Iterable[stats.Stratum], width: float = math.inf, *, binary: bool = False, margin: float | None = None
) -> PairedTest:
    """Test paired differences, each with the cluster it belongs to, and say how large they are.

    The test is `sign_flip`. The interval is

    - of differences between zeros and ones, and of differences with bounds that are all equal: Student's t interval of
      the clusters and one more at each end of what is possible, as Bonett and Price (2012), "Adjusted Wald confidence
      interval for a difference of binomial proportions based on paired data", do;
    - else that of `stats.interval`, between −`width` and `width`.

    An end that contradicts the test is moved to 0. `tests/extensions/analysis/test_paired.py` checks the coverage for
    zeros and ones. Equivalence is tested by `tost`, with two more clusters wherever the interval has them: where few
    pairs happen not to differ, a plain t test would take any margin for certain.

    Args:
        strata: the differences, condition by condition; one stratum if they are pooled.
        width: how large a difference can be.
        binary: whether they are differences between zeros and ones.
        margin: the largest difference that does not matter.
    """
    filled = [list(stratum) for stratum in strata if stratum]
    stat, pvalue = stats.clustered(filled), sign_flip(filled)
    ends, same = None, None
    if stat.value is not None and stat.stderr is not None:
        flat = stat.stderr <= 1e-12 * max(abs(x) for stratum in filled for _, x in stratum)
        if math.isfinite(width) and (binary or flat):
            center, error, df = _adjusted(stat, width)
            half = stats.t_quantile(df) * error
            ends = max(-width, min(stat.value, center - half)), min(width, max(stat.value, center + half))
        else:
            center, error, df = stat.value, stat.stderr, stat.df
            ends = stats.interval(filled, (-width, width))
        same = tost(center, error, df, margin) if margin is not None and error else None
    if ends and pvalue is not None and stat.value is not None:
        ends = _agreeing(ends, stat.value, pvalue)
    smallest = detectable(stat.stderr, stat.df) if stat.stderr and stat.clusters >= MIN_PAIRS else None
    if smallest is not None and smallest > width:
        smallest = None
    return PairedTest(stat.value, pvalue, ends, smallest, stat.n, stat.clusters, same)


def detectable(stderr: float | None, df: float, power: float = 0.8) -> float | None:
    """The smallest difference that a two-sided test at 0.05 finds with this power: (t₀.₉₇₅ + t_power) · SE.

    Miller (2024), Section 5, solved for the difference.
    """
    return None if stderr is None else (stats.t_quantile(df) + stats.t_quantile(df, power)) * stderr


def _adjusted(stat: stats.ClusteredMean, width: float) -> tuple[float, float, float]:
    """(mean, standard error, degrees of freedom) of the clusters and two more, at −`width` and `width`."""
    mean, error, count = stat.value or 0.0, stat.stderr or 0.0, stat.effective_clusters
    squares = error * error * count * (count - 1) + count * mean * mean + 2 * width * width
    center = count * mean / (count + 2)
    error = math.sqrt(max(0.0, squares - (count + 2) * center * center) / (count + 1) / (count + 2))
    return center, error, stat.df + 2


def _agreeing(ends: stats.Interval, value: float, pvalue: float) -> stats.Interval:
    low, high = ends
    if pvalue >= 0.05:
        return min(low, 0.0), max(high, 0.0)
    return (max(low, 0.0), high) if value > 0 else (low, min(high, 0.0))


# ---------------------------------------------------------------------------------------- the test


def sign_flip(strata: Iterable[stats.Stratum]) -> float | None:
    """The p-value of the sign-flip (randomization) test: which share of all signs of the clusters gives as large a sum?

    Where the sides do not differ, a cluster's sum of differences is as likely as its negative (Fisher, 1935, "The
    Design of Experiments", Section 21). So the test keeps its level however few clusters there are and however
    they are distributed, and repeats within a cluster add no certainty. With one difference between zeros and ones a
    cluster it is McNemar's exact test.

    All signs count, by convolution; sums are rounded to 1/32,768 of the largest one where there are too many, and
    have the normal law where that is off by less than 0.01 by the theorem of Berry and Esseen.

    Returns:
        The two-sided p-value; None with fewer than two clusters, and where the sum of every cluster is 0.
    """
    filled = [list(stratum) for stratum in strata if stratum]
    parts: dict[Hashable, list[float]] = {}
    for stratum in filled:
        for cluster, x in stratum:
            parts.setdefault(cluster, []).append(x / len(stratum))
    largest = max((abs(x) for numbers in parts.values() for x in numbers), default=0.0)
    sums = [math.fsum(numbers) / largest for numbers in parts.values()] if largest else []
    sums = [x for x in sums if abs(x) > 1e-12]
    if len(parts) < 2 or not sums:
        return None
    top = max(map(abs, sums))
    sums = [x / top for x in sums]  # so that what counts as a tie does not depend on the repeats
    seen = abs(math.fsum(sums))
    return min(1.0, float(f"{_tail(sorted(map(abs, sums)), seen):.10g}"))  # 2/2^5, not a rounding error above it


def _tail(sizes: Sequence[float], seen: float) -> float:
    """The share of signs of `sizes` whose sum is no nearer to 0 than `seen`."""
    import numpy

    counts: dict[float, int] = {}
    for size in sizes:
        counts[round(size, 12)] = counts.get(round(size, 12), 0) + 1
    sums: Any = numpy.zeros(1)
    shares: Any = numpy.ones(1)
    for size, count in counts.items():
        if len(sums) * (count + 1) > _MAX_SUMS:
            break
        heads = numpy.arange(count + 1)
        every = numpy.add.outer(sums, size * (2 * heads - count)).ravel()
        weights = numpy.multiply.outer(shares, _heads(count)).ravel()
        sums, places = numpy.unique(numpy.round(every, 9), return_inverse=True)
        shares = numpy.bincount(places, weights)
    else:
        return float(shares[numpy.abs(sums) >= seen - 1e-7].sum())
    squares = math.fsum(x * x for x in sizes)
    if 0.56 * math.fsum(x**3 for x in sizes) < _NORMAL * squares**1.5:
        return math.erfc(seen / math.sqrt(2 * squares))  # both tails of the normal law
    scale = _GRID / math.fsum(sizes)
    steps = [step for x in sizes if (step := round(x * scale))]
    total, law = sum(steps), numpy.zeros(sum(steps) + 1)  # law[k]: the share of signs whose positive steps add up to k
    law[0], top = 1.0, 0
    for step in steps:
        law[: top + 1] /= 2
        law[step : top + step + 1] += law[: top + 1].copy()
        top += step
    distance = numpy.abs(2 * numpy.arange(total + 1) - total)
    return float(law[distance >= math.floor(seen * scale)].sum())


@lru_cache(maxsize=128)
def _heads(count: int) -> Any:
    """The share of all outcomes of `count` coins that have 0, 1, …, `count` heads; the same few counts come often.

    From the middle outward, each from the one before: `scipy.stats.binom.pmf`, which takes a second to import.
    """
    import numpy

    half = count // 2
    heads = numpy.arange(half, count)
    upper = numpy.concatenate(([1.0], numpy.cumprod((count - heads) / (heads + 1))))
    every = numpy.concatenate((upper[::-1][:half], upper))
    return every / every.sum()


# ------------------------------------------------------------------------------------ what is paired

Group = Sequence[EpisodeScore]
"""The episodes of one side of a pair: one, or several repeats."""


def test(
    pairs: Iterable[tuple[Group, Group]],
    metric: str,
    cluster: Sequence[str] = (),
    bounds: tuple[float, float] = (-math.inf, math.inf),
    *,
    conditions: bool = False,
    margin: float | None = None,
) -> PairedTest:
    """Test whether a metric differs between the second and the first side of pairs: second − first.

    A side that has several episodes counts with their mean, or with the ratio of all of them together. Pairs in which
    one side has no number are left out.

    Args:
        pairs: the episodes of both sides.
        metric: its name.
        cluster: what belongs together, as in tables; the episodes of the first side say which cluster a pair is in, or
            those of the second where only these name their problem.
        bounds: between which numbers the metric lies (`harness.tables.scores.bounds_of`).
        conditions: whether every condition of the first side has the same weight (`mean_of_conditions`).
        margin: the largest difference that does not matter.
    """
    sides = (
        (one_side(first, metric, cluster, conditions=conditions), one_side(second, metric, conditions=conditions))
        for first, second in pairs
    )
    both = [(first, second) for first, second in sides if first and second]
    ratios = any(isinstance(side.number, tuple) for pair in both for side in pair)
    binary = not ratios and all(side.number in (0, 1) for pair in both for side in pair)
    width = math.inf if ratios else bounds[1] - bounds[0]
    return paired(differences(both), width, binary=binary and width == 1, margin=margin)


Number = float | Parts


class CaseNumber(NamedTuple):
    """One side of a pair.

    Attributes:
        condition: "" if conditions are pooled.
        cluster: the one that its episodes are in.
        is_sure: False where older scores name no problem, so that the cluster may be only a part of one.
        number: its number.
    """

    condition: str
    cluster: Hashable
    is_sure: bool
    number: Number


def one_side(group: Group, metric: str, cluster: Sequence[str] = (), *, conditions: bool = False) -> CaseNumber | None:
    """What a test must know about one side; None if it has no number. Arguments as in `test`."""
    value = number(group, metric)
    if value is None:
        return None
    keys = {cluster_of(score, cluster) for score in group}
    key: Hashable = keys.pop() if len(keys) == 1 else tuple(score.id for score in group)
    is_sure = bool(cluster) or all(score.problem for score in group)
    return CaseNumber(group[0].condition if conditions else "", key, is_sure, value)


def differences(pairs: Iterable[tuple[CaseNumber, CaseNumber]]) -> list[stats.Stratum]:
    """Second − first of every pair, with the condition of the first, and with its cluster unless only that of the
    second is sure."""
    strata: dict[str, tuple[list[Hashable], list[Number], list[Number]]] = {}
    for first, second in pairs:
        keys, before, after = strata.setdefault(first.condition, ([], [], []))
        keys.append(first.cluster if first.is_sure or not second.is_sure else second.cluster)
        before.append(first.number)
        after.append(second.number)
    return [
        list(zip(keys, map(minus, values(after), values(before)), strict=True))
        for keys, before, after in strata.values()
    ]


def number(group: Group, metric: str) -> Number | None:
    """The mean of the numbers of episodes; of parts their sums; None if there is none."""
    if parts := all_parts(group, metric):
        return math.fsum(a for a, _ in parts), math.fsum(b for _, b in parts)
    return stats.mean(numbers(group, metric)).value


def values(sides: Sequence[Number]) -> list[float]:
    """One number a pair, so that their mean is that of the side: of parts the ratio of all pairs together."""
    parts = [side for side in sides if isinstance(side, tuple)]
    return linearize(parts) if parts else [side for side in sides if not isinstance(side, tuple)]
