from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from harness.api import Episode, Metric, Statistic, plugin

from ._inner import inner
from ._numbers import total


@plugin
class InnerCost(Metric):
    """USD that the inner engine reports for inner calls; by prices, the table "Cost" has it.

    Attributes:
        over: "episode" averages over episodes, "run" sums them.
    """

    bounds = (0, math.inf)
    over: Literal["episode", "run"] = "episode"

    def measure(self, episode: Episode) -> float | None:
        return inner(episode, "cost")

    def aggregate(self, numbers: Sequence[float]) -> Statistic:
        return total(numbers) if self.over == "run" else super().aggregate(numbers)
