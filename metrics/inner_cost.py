from __future__ import annotations

import math

from harness.api import Episode, plugin

from ._inner import inner
from ._numbers import EpisodeTotal


@plugin
class InnerCost(EpisodeTotal):
    """USD that the inner engine reports for inner calls; by prices, the table "Cost" has it."""

    bounds = (0, math.inf)

    def measure(self, episode: Episode) -> float | None:
        return inner(episode, "cost")
