from __future__ import annotations

import math

from harness.api import Episode, Metric, plugin

from ._numbers import fact_of_all


@plugin
class DroppedMessages(Metric):
    """Messages in the episode's replies that were not sent: a later one replaced them, or the receiver is unknown."""

    bounds = (0, math.inf)
    needs = ("dropped",)

    def measure(self, episode: Episode) -> float | None:
        return fact_of_all(episode, "dropped")
