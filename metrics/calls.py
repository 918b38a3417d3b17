from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from harness.api import Episode, Metric, Statistic, plugin

from ._numbers import calls, total


@plugin
class Calls(Metric):
    """Model calls per episode, parse retries included. Policies make no calls.

    Attributes:
        over: "episode" averages over episodes; "run" sums them (DPBench, Table 5). The sum leaves out episodes that
            failed or never ran.
    """

    bounds = (0, math.inf)
    over: Literal["episode", "run"] = "episode"

    def measure(self, episode: Episode) -> float | None:
        return float(sum(1 for _ in calls(episode)))

    def aggregate(self, numbers: Sequence[float]) -> Statistic:
        return total(numbers) if self.over == "run" else super().aggregate(numbers)
