from __future__ import annotations

import math

from harness.api import Episode, Metric, plugin

from ._numbers import fact_of_all


@plugin
class Messages(Metric):
    """Messages sent per episode, as the protocol counts them."""

    bounds = (0, math.inf)
    needs = ("messages",)

    def measure(self, episode: Episode) -> float | None:
        return fact_of_all(episode, "messages")
