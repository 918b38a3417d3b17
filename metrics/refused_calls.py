from __future__ import annotations

import math

from harness.api import Episode, Metric, plugin

from ._numbers import fact_of_all


@plugin
class RefusedCalls(Metric):
    """Calls per episode that the environment answered with an error: unknown, malformed, too many, or not allowed."""

    bounds = (0, math.inf)
    needs = ("refused",)

    def measure(self, episode: Episode) -> float | None:
        return fact_of_all(episode, "refused")
