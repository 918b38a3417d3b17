from __future__ import annotations

import math

from harness.api import Episode, Metric, plugin

from .._numbers import fact
from ._table import meals


@plugin
class Throughput(Metric):
    """Meals of all philosophers per timestep (DPBench, eq. 2).

    In sequential order every action is a timestep, so the same play gives a number N times smaller than in
    simultaneous order. `dpbench/meals_per_round` does not depend on the order.
    """

    bounds = (0, math.inf)
    needs = ("eaten", "timesteps")

    def measure(self, episode: Episode) -> float | None:
        eaten, timesteps = meals(episode), fact(episode, "timesteps")
        return sum(eaten) / timesteps if eaten is not None and timesteps else None
