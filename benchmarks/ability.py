"""How well the size at which half is solved is found: its error, its interval, and the episodes that --adaptive saves.

python benchmarks/run.py ability
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from harness.extensions.ability.curve import Posterior
from harness.extensions.ability.next_sizes import is_known, next_sizes

SIZES = tuple(2 * 1.5**k for k in range(16))
"""From 2 to 876 agents."""
EPISODES = 30
"""Of each size, in the grid that is played whole."""
SLOPES = (2.0, 8.0)
"""Slopes lie between these, as many in each octave: from 90 to 10 % solved over a factor of 9, or of 1.7, in size."""
BANDS = ((2.0, 3.0), (3.0, 5.0), (5.0, 8.0), SLOPES)
LAPSE = 0.02
MARGIN = 2.0
"""True sizes lie between this factor above the smallest size and below the largest."""


@dataclass(frozen=True)
class Group:
    """A simulated group: its slope, and what was found of it: (error, whether the interval covers, episodes played)."""

    slope: float
    grid: tuple[float, bool, int]
    adaptive: tuple[float, bool, int]


def _found(posterior: Posterior, true: float, played: int) -> tuple[float, bool, int]:
    size = posterior.threshold()
    return abs(size.value / math.exp(true) - 1), size.low <= math.exp(true) <= size.high, played


def simulated(groups: int, seed: int = 0, episodes: int = EPISODES) -> list[Group]:
    """Groups that play the whole grid, and the same groups played adaptively until their interval is as narrow."""
    generator, logs, found = numpy.random.default_rng(seed), numpy.log(SIZES), list[Group]()
    for group in range(groups):
        luck = numpy.random.default_rng((seed, group))  # so that other choices leave the groups the same
        slope = math.exp(generator.uniform(math.log(SLOPES[0]), math.log(SLOPES[1])))
        location = generator.uniform(logs[0] + math.log(MARGIN), logs[-1] - math.log(MARGIN))
        shares = (1 - LAPSE) / (1 + numpy.exp(slope * (logs - location)))
        true = location + math.log1p(-2 * LAPSE) / slope
        whole = Posterior(SIZES)
        for level, solved in enumerate(generator.binomial(episodes, shares)):
            whole.count(level, float(solved), float(episodes - solved))
        size = whole.threshold()
        within, one, played = size.high / size.low, Posterior(SIZES), 0
        while not is_known(one.threshold(), played, within):
            for level in next_sizes(one, [10 * episodes] * len(SIZES), played, within):
                success = float(luck.random() < shares[level])
                one.count(level, success, 1 - success)
                played += 1
        found.append(Group(slope, _found(whole, true, episodes * len(SIZES)), _found(one, true, played)))
    return found


def summary(groups: Sequence[Group]) -> list[dict[str, object]]:
    """A line for each band of slopes, and one for all."""
    rows = []
    for low, high in BANDS:
        own = [group for group in groups if low <= group.slope <= high]
        row: dict[str, object] = {"slope": f"{low:g} to {high:g}", "groups": len(own)}
        for name in ("grid", "adaptive"):
            errors, covered, _ = zip(*(getattr(group, name) for group in own), strict=True)
            row[f"{name}: error"] = f"{statistics.median(errors):.1%}"
            row[f"{name}: within 10 %"] = f"{sum(error <= 0.1 for error in errors) / len(own):.1%}"
            row[f"{name}: covered"] = f"{sum(covered) / len(own):.3f}"
        share = sum(group.adaptive[2] for group in own) / sum(group.grid[2] for group in own)
        rows.append({**row, "episodes": f"{share:.1%}"})
    return rows


def coverage(groups: int) -> list[dict[str, object]]:
    """As `summary`, of so many groups in four series."""
    return summary([group for seed in range(4) for group in simulated(groups // 4, seed)])
