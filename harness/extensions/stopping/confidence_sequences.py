"""Confidence sequences: intervals of a mean that cover it at all times at once, so that a run may be looked at after
every observation and ended whenever that suits.

Observations are pairs (a, d), and the mean is E[a] / E[d]: an episode without a number has neither, one of a ratio has
its numerator and denominator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

Interval = tuple[float, float]
LEVEL: Final = 0.95
_MOST: Final = 0.75
"""The largest share of its capital that a bet on one distance may lose. More wins sooner where numbers vary little, and
later where nearly all are equal."""
_STAKES: Final = tuple(k / 26 for k in range(1, 26))
"""Shares of the capital that bets on any distance may lose."""
_POINTS: Final = (2_000, 20_000)
"""Between how many and how many means are tested."""
_TINY: Final = 1e-9
_FEW: Final = 50
"""Before so many observations the central limit theorem is not relied upon."""


class BettingSequence:
    """A confidence sequence of a mean between 0 and 1: the means against which no gambler wins (Waudby-Smith and
    Ramdas, 2023, "Estimating means of bounded random variables by betting", JRSS B 86(1), Section 4).

    For each of many means m a gambler bets that the true one is above it, and another one that it is below. If m is
    true, neither has ever 2/α times the first capital, but with probability α/2 (Ville's inequality), whatever the
    distribution and however bets depend on the past. The bet is what makes capital grow fastest if the true mean is a
    distance h away: h / (σ² + h²), by the variance so far. So the interval becomes ±h about as soon as it can. Where
    any distance is to be found out soon, the capital is divided among bets that may lose a fixed share of theirs, from
    small ones to nearly all (an equal mixture of a grid, their "grid Kelly"): one of them is about right for whatever
    distance and variance there are.

    Args:
        distances: the h, in parts of the range, None for any; each gets an equal part of the capital.
        largest: no d is larger.
    """

    def __init__(self, distances: Sequence[float | None], largest: float = 1.0) -> None:
        import numpy

        tuned = [one for one in distances if one is not None]
        points = min(max(_POINTS[0], math.ceil(20 / min(tuned, default=1.0))), _POINTS[1])
        self._step = 1 / points
        stakes = [*_STAKES] if len(tuned) < len(distances) else []
        self._distances: Any = numpy.asarray(tuned, float)[:, None]
        self._stakes: Any = numpy.asarray(stakes, float)[:, None]
        capital = [1 / len(distances)] * len(tuned) + [1 / len(distances) / len(_STAKES)] * len(stakes)
        self._capital: Any = numpy.log(capital)[:, None]
        self._means: Any = numpy.linspace(0.0, 1.0, points + 1)
        self._logs: Any = numpy.zeros((2, len(capital), points + 1))  # how bets above and below have multiplied theirs
        self._largest = largest
        self._sums = [0.0, 0.0]
        self._squares, self.n = 0.0, 0

    def add(self, a: float, d: float) -> None:
        """Take an observation, 0 ≤ a ≤ d ≤ `largest`."""
        import numpy

        a, d = a / self._largest, d / self._largest
        bets = self._distances / ((0.25 + self._squares) / (self.n + 1) + self._distances**2)
        gains = a - self._means * d
        for logs, room, won in ((self._logs[0], self._means, gains), (self._logs[1], 1 - self._means, -gains)):
            room = numpy.maximum(room, _TINY)  # at 0 and 1 nothing can be lost
            staked = numpy.concatenate([numpy.minimum(bets, _MOST / room), self._stakes / room])
            logs += numpy.log1p(staked * won)
        self._drop_means()
        center = (0.5 + self._sums[0]) / (1 + self._sums[1])
        self._squares += (a - center * d) ** 2
        self._sums = [self._sums[0] + a, self._sums[1] + d]
        self.n += 1

    def _drop_means(self) -> None:
        """Forget the means that are ruled out: they stay so. They are at either end, since those who bet above a mean
        win the more the smaller it is. The last ones stay."""
        above, below = (_sum(logs + self._capital) for logs in self._logs)
        enough = math.log(2 / (1 - LEVEL))
        first, last = int((above >= enough).sum()), len(below) - int((below >= enough).sum())
        if last > first and (first or last < len(below)):
            self._means = self._means[first:last]
            self._logs = self._logs[:, :, first:last]

    def count_for(self, width: float) -> float:
        """About how many observations it takes until the interval is ± `width`."""
        variance = self._squares / max(self.n, 1) / (self._sums[1] / max(self.n, 1)) ** 2 if self._sums[1] else 0.0
        log = math.log(2 / (1 - LEVEL))
        return max(2 * variance * log / width**2, log / (2 * _MOST * width))

    @property
    def interval(self) -> Interval:
        """The interval now, which never grows; its ends are rounded outward to the next mean that was tested."""
        return max(float(self._means[0]) - self._step, 0.0), min(float(self._means[-1]) + self._step, 1.0)


def _sum(logs: Any) -> Any:
    """The logarithm of the sum of exp(logs), over the first axis."""
    if len(logs) == 1:
        return logs[0]
    import numpy

    top = logs.max(axis=0)
    return top + numpy.log(numpy.exp(logs - top).sum(axis=0))


_CUBES: Final = ((3, 0), (2, 1), (1, 2), (0, 3))
_POWERS: Final = ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2), *_CUBES)
"""Of a and d: the products that are added up."""


class AsymptoticSequence:
    """An asymptotic confidence sequence of a mean without bounds (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas,
    2024, "Time-uniform central limit theory and asymptotic confidence sequences", Annals of Statistics 52(6), eq. 10).

    As with Student's interval, coverage holds as far as the central limit theorem does. So there is none before the
    fiftieth observation, nor before 25 times the square of their skewness (Cochran, 1977, "Sampling Techniques",
    Section 2.15). Of ratios the residuals a − r·d stand for the observations, over the mean of d.

    Args:
        tightest: after how many observations the sequence is to be tightest; fixed before the first.
    """

    def __init__(self, tightest: int) -> None:
        log = -2 * math.log(1 - LEVEL)
        self._rho2 = (log + math.log(log) + 1) / max(tightest, _FEW)
        self._sums = dict.fromkeys(_POWERS, 0.0)
        self.n = 0

    def add(self, a: float, d: float) -> None:
        """Take an observation."""
        products = (a, d, a * a, a * d, d * d, a * a * a, a * a * d, a * d * d, d * d * d)
        self._sums = {powers: self._sums[powers] + x for powers, x in zip(_POWERS, products, strict=True)}
        self.n += 1

    def count_for(self, width: float) -> float:
        """About how many observations it takes until the interval is ± `width`."""
        if self.n < _FEW:
            return _FEW
        deviation = self._spread()[1]
        needed = 2 * math.log(2 / (1 - LEVEL)) * (deviation / width) ** 2 if deviation and width else math.inf
        return max(self._least, needed)

    @property
    def _least(self) -> float:
        """How many observations it takes to rely upon the central limit theorem, by their skewness."""
        ratio, deviation = self._spread()
        if not deviation:
            return _FEW
        signs = (1, -3 * ratio, 3 * ratio * ratio, -ratio * ratio * ratio)
        cubes = sum(sign * self._sums[powers] for sign, powers in zip(signs, _CUBES, strict=True))
        skewness = cubes / self.n / (deviation * abs(self._sums[0, 1] / self.n)) ** 3
        return max(_FEW, 25 * skewness**2)

    def _spread(self) -> tuple[float, float]:
        """The ratio of the means, and the standard deviation of one observation of it."""
        a, d, aa, ad, dd = (self._sums[powers] for powers in _POWERS[:5])
        if self.n < 2 or not d:
            return 0.0, 0.0
        ratio = a / d
        variance = max(aa - 2 * ratio * ad + ratio * ratio * dd, 0.0) / (self.n - 1)
        return ratio, math.sqrt(variance) / abs(d / self.n)

    @property
    def interval(self) -> Interval | None:
        """The interval now; None before there are enough observations, and where all are equal: that does not say how
        sure they are."""
        ratio, deviation = self._spread()
        if not deviation or self.n < self._least:
            return None
        spread = self.n * self._rho2 + 1
        half = deviation * math.sqrt(
            2 * spread / (self.n * self._rho2) * math.log(math.sqrt(spread) / (1 - LEVEL)) / self.n
        )
        return ratio - half, ratio + half
