"""What agents of your own say that they cost."""

from __future__ import annotations

import math

from harness.api import Episode, plugin

from ._numbers import EpisodeTotal, calls


@plugin
class ReportedCost(EpisodeTotal):
    """USD that agents of your own report, summed over the calls of an episode. Missing if no call reports any.

    Only what they report: the table "Cost" also knows what tokens cost, by prices (`cost: {NAME: all}` in a table).
    """

    bounds = (0, math.inf)

    def measure(self, episode: Episode) -> float | None:
        costs = [call.cost for call in calls(episode) if call.cost is not None]
        return math.fsum(costs) if costs else None
