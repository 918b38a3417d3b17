"""How well the size at which half is solved is found: its error, its interval, and the episodes that --adaptive saves.

python benchmarks/run.py ability
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field

import numpy

from harness.extensions.ability.curve import Posterior
from harness.extensions.ability.next_sizes import FIRST, next_sizes

SIZES = tuple(2 * 1.5**k for k in range(16))
"""From 2 to 876 agents."""
EPISODES = 30
"""Of each size, in the grid that is played whole."""
SLOPES = (1.5, 2, 3, 4, 6, 8)
"""From 90 to 10 % solved over a factor of 19, 9, 4.3, 3, 2.1 and 1.7 in size."""
LAPSE = 0.02
MARGIN = 2.0
"""True sizes lie between this factor above the smallest size and below the largest."""


@dataclass
class Found:
    """What was found of simulated groups."""

    errors: list[float] = field(default_factory=list)
    covered: int = 0
    played: int = 0

    def add(self, posterior: Posterior, true: float, played: int) -> None:
        """Take in a group with this log size solved by half."""
        size = posterior.threshold()
        self.errors.append(abs(size.value / math.exp(true) - 1))
        self.covered += size.low <= math.exp(true) <= size.high
        self.played += played

    def words(self, name: str) -> dict[str, object]:
        """Median error, groups with an error below 10 %, coverage."""
        count = len(self.errors)
        near = sum(error <= 0.1 for error in self.errors) / count
        return {
            f"{name}: median error": f"{statistics.median(self.errors):.1%}",
            f"{name}: within 10 %": f"{near:.1%}",
            f"{name}: covered": f"{self.covered / count:.3f}",
        }


def simulated(groups: int, slope: float, episodes: int = EPISODES, seed: int = 0) -> tuple[Found, Found]:
    """Groups that play the whole grid, and the same groups played adaptively until their interval is as narrow."""
    generator, grid, adaptive = numpy.random.default_rng(seed), Found(), Found()
    logs = numpy.log(SIZES)
    for _ in range(groups):
        location = generator.uniform(logs[0] + math.log(MARGIN), logs[-1] - math.log(MARGIN))
        shares = (1 - LAPSE) / (1 + numpy.exp(slope * (logs - location)))
        true = location + math.log1p(-2 * LAPSE) / slope
        whole = Posterior(SIZES)
        for level, solved in enumerate(generator.binomial(episodes, shares)):
            whole.count(level, float(solved), float(episodes - solved))
        grid.add(whole, true, episodes * len(SIZES))
        size = whole.threshold()
        one, played = Posterior(SIZES), 0
        while played < FIRST or one.threshold().high / one.threshold().low > size.high / size.low:
            for level in next_sizes(one, [10 * episodes] * len(SIZES), played):
                solved = float(generator.random() < shares[level])
                one.count(level, solved, 1 - solved)
                played += 1
        adaptive.add(one, true, played)
    return grid, adaptive


def coverage(groups: int) -> list[dict[str, object]]:
    """A line for each slope."""
    rows = []
    for slope in SLOPES:
        grid, adaptive = simulated(groups, slope)
        share = f"{adaptive.played / grid.played:.1%}"
        rows.append({"slope": slope, **grid.words("grid"), **adaptive.words("adaptive"), "of the grid's": share})
    return rows
