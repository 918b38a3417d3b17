"""`harness plan --adaptive`: how many episodes it is likely to take."""

from __future__ import annotations

import argparse
import functools
import math
import random
from collections.abc import Iterator
from typing import Final

from harness.checks.estimate import Estimate
from harness.config.plan import Plan, survey

from .ability_options import factor
from .adaptive_rule import Adaptive
from .curve import Posterior, shares_at
from .next_sizes import is_known, next_sizes

_GROUPS: Final = 20
_SLOPES: Final = (2.0, 8.0)
_LAPSE: Final = 0.02


def likely(options: argparse.Namespace, plan: Plan, figures: Estimate) -> Iterator[str]:
    """The lines that `--adaptive` adds to a plan. Raises `SpecError` where the run could not be adaptive."""
    rule = Adaptive(factor(options.adaptive))
    rule.begin(plan, survey(plan).episodes)
    grids = [grid for grid in rule.grids if len(grid[0]) > 1]
    found = [simulated(*grid, rule.floor, rule.within) for grid in grids]
    # Curves of equal sizes have the same groups, so each begins with another one.
    sums = sorted(sum(one[(i + k) % _GROUPS] for k, one in enumerate(found)) for i in range(_GROUPS))
    middle, few, many = sums[_GROUPS // 2], sums[_GROUPS // 10], sums[-1 - _GROUPS // 10]
    yield f"adaptive        about {middle:,} of {figures.episodes:,} episodes until within a factor {rule.within:g}"
    yield (
        f"                ({few:,} to {many:,} for 8 of 10 simulated groups with slopes from {_SLOPES[0]:g} to "
        f"{_SLOPES[1]:g} that solve half between the smallest and the largest)"
    )


@functools.lru_cache(maxsize=16)
def simulated(levels: tuple[float, ...], counts: tuple[int, ...], floor: float, within: float) -> list[int]:
    """How many episodes each of some simulated groups plays: slopes and sizes are drawn evenly by logarithm."""
    import numpy as np

    rng, found = random.Random(0), list[int]()
    for _ in range(_GROUPS):
        slope = math.exp(rng.uniform(*map(math.log, _SLOPES)))
        location = rng.uniform(math.log(levels[0]), math.log(levels[-1]))
        shares = shares_at(levels, floor, *(np.array([x]) for x in (location, slope, _LAPSE)))[:, 0]
        posterior, left, played = Posterior(levels, floor), list(counts), 0
        while any(left) and not is_known(posterior.threshold(), played, within):
            for level in next_sizes(posterior, left, played, within):
                solved = float(rng.random() < shares[level])
                posterior.count(level, solved, 1 - solved)
                left[level] -= 1
                played += 1
        found.append(played)
    return found
