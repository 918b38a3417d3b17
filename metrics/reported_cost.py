"""What agents of your own say that they cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from harness.api import Episode, Metric, Statistic, plugin

from ._numbers import calls, total


@plugin
class ReportedCost(Metric):
    """USD that agents of your own report, summed over the calls of an episode. Missing if no call reports any.

    Only what they report: the table "Cost" also knows what tokens cost, by prices (`cost: {NAME: all}` in a table).

    Attributes:
        over: "episode" averages over episodes, "run" sums them.
    """

    bounds = (0, math.inf)
    over: Literal["episode", "run"] = "episode"

    def measure(self, episode: Episode) -> float | None:
        costs = [call.cost for call in calls(episode) if call.cost is not None]
        return math.fsum(costs) if costs else None

    def aggregate(self, numbers: Sequence[float]) -> Statistic:
        return total(numbers) if self.over == "run" else super().aggregate(numbers)
