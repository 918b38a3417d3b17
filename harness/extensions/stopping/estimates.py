"""What is known of one mean after some blocks of episodes: its confidence sequence, in the number's own units."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from harness.api import Parts

from .confidence_sequences import AsymptoticSequence, BettingSequence, Interval

Method = Literal["betting", "asymptotic"]


@dataclass(frozen=True)
class Mean:
    """A weighted mean over episodes, as a table shows it.

    Attributes:
        name: what it is called.
        weights: id of an episode → its weight; all add up to 1.
        bounds: between which numbers those of episodes lie.
    """

    name: str
    weights: Mapping[str, float]
    bounds: tuple[float, float]


@dataclass
class MeanEstimate:
    """The confidence sequence of a mean. Numbers without bounds, or beyond them, have an asymptotic one.

    Args:
        mean: of what.
        blocks: ids of the episodes of each block.
        scale: as in `Blocks`.
        distances: how far from the truth a mean should be found out, in units of the number; None: however far.
    """

    mean: Mean
    blocks: Sequence[Sequence[str]]
    scale: Mapping[str, float]
    distances: Sequence[float | None]
    n: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        low, high = self.mean.bounds
        self._betting: BettingSequence | None = None
        if math.isfinite(high - low):
            largest = max(math.fsum(self._weight(name) for name in block) for block in self.blocks)
            shares = [None if distance is None else distance / (high - low) for distance in self.distances]
            self._betting = BettingSequence(shares, largest)
        self._asymptotic = AsymptoticSequence(len(self.blocks) // 2)

    def _weight(self, name: str) -> float:
        return self.mean.weights.get(name, 0.0) * self.scale[name]

    def add(self, numbers: Mapping[str, float | Parts]) -> None:
        """Take the next block: the numbers of its episodes that have one, by id."""
        low, high = self.mean.bounds
        a = d = share = 0.0
        for name in self.blocks[self.n]:
            if (number := numbers.get(name)) is None or not (weight := self._weight(name)):
                continue
            top, bottom = number if isinstance(number, tuple) else (number, 1.0)
            a, d = a + weight * top, d + weight * bottom
            if self._betting is not None and not low <= top <= high:
                self._betting = None  # they are no bounds of this run
            if self._betting is not None:
                share += weight * (top - low) / (high - low)
        self._asymptotic.add(a, d)
        if self._betting is not None:
            self._betting.add(min(share, d), d)
        self.n += 1

    def blocks_for(self, width: float) -> float:
        """About how many blocks it takes until the interval is ± `width`, if later ones are like those so far."""
        low, high = self.mean.bounds
        if self._betting is not None:
            return self._betting.count_for(width / (high - low))
        return self._asymptotic.count_for(width)

    @property
    def method(self) -> Method:
        """Of the interval."""
        return "asymptotic" if self._betting is None else "betting"

    @property
    def interval(self) -> Interval | None:
        """The interval now; None where there is none yet."""
        low, high = self.mean.bounds
        if self._betting is not None:
            below, above = self._betting.interval
            return low + below * (high - low), low + above * (high - low)
        return self._asymptotic.interval
