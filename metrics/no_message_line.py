from __future__ import annotations

import math

from harness.api import Episode, Metric, plugin

from ._numbers import fact_of_all


@plugin
class NoMessageLine(Metric):
    """Actions per episode beside whose reply no message can be read, although one goes with each.

    A reply that says `MESSAGE: None` is silent and does not count.
    """

    bounds = (0, math.inf)
    needs = ("no_message_line",)

    def measure(self, episode: Episode) -> float | None:
        return fact_of_all(episode, "no_message_line")
