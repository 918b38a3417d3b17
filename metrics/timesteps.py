from __future__ import annotations

import math

from harness.api import Episode, Metric, plugin

from ._numbers import fact


@plugin
class Timesteps(Metric):
    """Timesteps per episode, as the protocol counts them. In sequential order every action is one."""

    bounds = (0, math.inf)
    needs = ("timesteps",)

    def measure(self, episode: Episode) -> float | None:
        return fact(episode, "timesteps")
