"""Ability curves: how the share of solved episodes falls as a task grows, and the size at which half are solved.

The share at size x is floor + (1 - floor) · (1 - lapse) / (1 + (x / location) ** slope): a logistic curve over log
size. `floor` is what chance solves. A lapse is a failure that has nothing to do with the size. The posterior stands on
a grid of locations, slopes and lapses, as in QUEST+ (Watson, 2017, doi:10.1167/17.3.10).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, numpy.dtype[numpy.float64]]

SLOPES: Final = tuple(16 ** (i / 11) for i in range(12))
"""From 1 to 16, equally likely: the share falls from 90 to 10 % over a factor of exp(4.4 / slope) in size."""
LAPSES: Final = {0.0: 0.5, 0.02: 0.3, 0.06: 0.15, 0.15: 0.05}
"""Lapse → how likely it is beforehand."""
BEYOND: Final = 4.0
"""How many times the largest size, and which part of the smallest, locations reach; all in between equally likely."""
_STEP: Final = 0.04
"""Between two locations, in log size."""
_LEAST: Final = -100.0
"""The least log weight of a point: what is smaller is no more than none, and slow to compute with."""
_COARSE: Final = 2
"""Bins of so many steps are what an episode is to tell apart."""


class Observed(NamedTuple):
    """An episode: the index of its size, what it solved (from 0 to 1), and which observation it is part of."""

    level: int
    solved: float
    cluster: Hashable


@dataclass(frozen=True)
class _Grid:
    """What does not depend on data: for all points the share solved at each size, and the log size solved by half.

    Points come in the order of `half`. Bin k is of those that have it within half a step of (first + k) steps; `bins`
    has that of each point, and `coarse` where the joined bins begin that are not empty.
    """

    location: Array
    slope: Array
    lapse: Array
    share: Array  # sizes × points
    log_share: Array
    log_rest: Array
    half: Array
    log_prior: Array
    bins: Any
    first: int
    coarse: Any


def shares_at(sizes: Sequence[float], floor: float, location: Array, slope: Array, lapse: Array) -> Array:
    """Of all points (columns) the share solved at each size (rows); locations are logarithms of sizes."""
    import numpy as np

    logs = np.log(np.asarray(sizes, float))[:, None]
    share = floor + (1 - floor) * (1 - lapse) / (1 + np.exp(slope * (logs - location)))
    clipped: Array = np.clip(share, 1e-12, 1 - 1e-12)
    return clipped


@functools.lru_cache(maxsize=64)
def _grid(levels: tuple[float, ...], floor: float) -> _Grid:
    import numpy as np

    # Multiples of the step: further sizes move no point.
    low, high = math.log(levels[0] / BEYOND) // _STEP, math.log(levels[-1] * BEYOND) // _STEP + 1
    locations = _STEP * np.arange(low, high + 1)
    location, slope, lapse = (x.ravel() for x in np.meshgrid(locations, SLOPES, [*LAPSES], indexing="ij"))
    half = location + np.log1p(-2 * lapse) / slope
    order = np.argsort(half, kind="stable")
    location, slope, lapse, half = location[order], slope[order], lapse[order], half[order]
    share = shares_at(levels, floor, location, slope, lapse)
    prior = np.log([LAPSES[x] for x in lapse])
    bins = np.floor(half / _STEP + 0.5).astype(int)
    first = int(bins[0])
    bins -= first
    coarse = np.flatnonzero(np.diff(bins // _COARSE, prepend=-1))
    return _Grid(location, slope, lapse, share, np.log(share), np.log1p(-share), half, prior, bins, first, coarse)


class Posterior:
    """What is known of one curve.

    Args:
        levels: the sizes, ascending, above 0; at least two.
        floor: what chance solves at every size, from 0 to below 1.

    Raises:
        ValueError: for other sizes or another floor.
    """

    def __init__(self, levels: Sequence[float], floor: float = 0.0) -> None:
        if len(levels) < 2 or levels[0] <= 0 or any(a >= b for a, b in itertools.pairwise(levels)):
            raise ValueError(f"a curve needs at least two sizes above 0, ascending, found {list(levels)!r:.80}")
        if not 0 <= floor < 1:
            raise ValueError(f"a floor lies in [0, 1), found {floor!r:.40}")
        self.levels, self.floor = tuple(map(float, levels)), float(floor)
        self._grid = _grid(self.levels, self.floor)
        self._log = self._grid.log_prior
        self._weights: Array | None = None

    @classmethod
    def of(cls, levels: Sequence[float], floor: float, observed: Sequence[Observed]) -> Posterior:
        """The posterior given episodes.

        Of k episodes in a cluster each counts 1 / (1 + (k - 1) · r), where r is the correlation of their residuals: a
        moment estimate over all clusters, from 0 to 1.
        """
        one = cls(levels, floor)
        one._take(observed, itertools.repeat(1.0))
        sizes = Counter(each.cluster for each in observed)
        if len(sizes) == len(observed):
            return one
        correlation = _correlation(observed, one.shares())
        again = cls(levels, floor)
        again._take(observed, (1 / (1 + (sizes[each.cluster] - 1) * correlation) for each in observed))
        return again

    def _take(self, observed: Iterable[Observed], weights: Iterable[float]) -> None:
        solved, failed = [0.0] * len(self.levels), [0.0] * len(self.levels)
        for each, weight in zip(observed, weights, strict=False):
            solved[each.level] += weight * each.solved
            failed[each.level] += weight * (1 - each.solved)
        for level, (one, other) in enumerate(zip(solved, failed, strict=True)):
            if one or other:
                self.count(level, one, other)

    def count(self, level: int, solved: float, failed: float) -> None:
        """Take in so many episodes of a size that were solved, and that failed."""
        self._log = self._log + solved * self._grid.log_share[level] + failed * self._grid.log_rest[level]
        self._weights = None

    @property
    def weights(self) -> Array:
        """Of all points of the grid, with the sum 1."""
        import numpy as np

        if self._weights is None:
            weights = np.exp((self._log - self._log.max()).clip(min=_LEAST))
            self._weights = weights / weights.sum()
        return self._weights

    def shares(self) -> list[float]:
        """The expected share solved at each size."""
        return [float(x) for x in self._grid.share @ self.weights]

    def band(self, sizes: Sequence[float]) -> list[tuple[float, float, float]]:
        """(low, expected, high) of the share solved at any sizes, with 95 % between low and high."""
        import numpy as np

        grid, found = self._grid, list[tuple[float, float, float]]()
        for share in shares_at(sizes, self.floor, grid.location, grid.slope, grid.lapse):
            order = np.argsort(share)
            low, high = np.interp((0.025, 0.975), np.cumsum(self.weights[order]), share[order])
            found.append((float(low), float(share @ self.weights), float(high)))
        return found

    def quantiles(self, *shares: float) -> list[float]:
        """Quantiles of the size at which half is solved: the weight of a bin lies evenly over it."""
        import numpy as np

        below = np.concatenate([[0.0], np.cumsum(np.bincount(self._grid.bins, self.weights))])
        edges = _STEP * (self._grid.first - 0.5 + np.arange(len(below)))
        return [float(np.exp(np.interp(share, below, edges))) for share in shares]

    def threshold(self) -> Threshold:
        """The size at which half is solved."""
        value, low, high = self.quantiles(0.5, 0.025, 0.975)
        return Threshold(value, low, high, self.levels[0], self.levels[-1])

    def expected_entropies(self) -> list[float]:
        """For each size the entropy, in nats, of the log size solved by half (in coarse bins) that is expected after
        one more episode there."""
        import numpy as np

        solved = np.add.reduceat(self._grid.share * self.weights, self._grid.coarse, axis=1)  # sizes × bins
        failed = np.add.reduceat(self.weights, self._grid.coarse) - solved
        expected: Array = _entropy(solved) + _entropy(failed)
        return [float(x) for x in expected]

    def expecting(self, level: int) -> Posterior:
        """The posterior after an episode of a size that turns out as expected: for choosing several at once."""
        one = Posterior(self.levels, self.floor)
        one._log, share = self._log, float(self._grid.share[level] @ self.weights)
        one.count(level, share, 1 - share)
        return one


def _entropy(weights: Array) -> Array:
    """Of each row of weights its entropy times its sum."""
    import numpy as np

    weights = weights.clip(min=1e-300)
    total = weights.sum(axis=1)
    entropy: Array = total * np.log(total) - (weights * np.log(weights)).sum(axis=1)
    return entropy


class Threshold(NamedTuple):
    """The size at which half is solved: the posterior's median, its 95 % interval, and between which sizes it was
    measured."""

    value: float
    low: float
    high: float
    smallest: float
    largest: float

    @property
    def beyond(self) -> Literal["above", "below"] | None:
        """Whether it lies beyond the sizes there are: a number would be extrapolated."""
        return "above" if self.value > self.largest else "below" if self.value < self.smallest else None

    @property
    def within(self) -> tuple[float, float, float]:
        """Value, low and high, none beyond the sizes there are."""
        value, low, high = (min(max(x, self.smallest), self.largest) for x in self[:3])
        return value, low, high

    @property
    def is_beyond_surely(self) -> bool:
        """Whether its whole interval lies beyond the sizes there are, so that no further episode would say more."""
        return self.low > self.largest or self.high < self.smallest


def _correlation(observed: Sequence[Observed], shares: Sequence[float]) -> float:
    """Of the residuals of episodes in one cluster (a moment estimate, from 0 to 1)."""
    clusters: dict[Hashable, list[tuple[float, float]]] = {}
    for level, solved, cluster in observed:
        expected = shares[level]
        clusters.setdefault(cluster, []).append((solved - expected, expected * (1 - expected)))
    common = spread = 0.0
    for pairs in clusters.values():
        residuals = [residual for residual, _ in pairs]
        common += sum(residuals) ** 2 - sum(residual**2 for residual in residuals)
        spread += (len(pairs) - 1) * sum(variance for _, variance in pairs)
    return min(1.0, max(0.0, common / spread)) if spread else 0.0
