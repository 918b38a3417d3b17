from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from harness.api import Episode, Metric, Statistic, plugin

from ._inner import inner
from ._numbers import total


@plugin
class InnerCalls(Metric):
    """Calls that agents' programs make of a model of the run (`inner`), those of failed turns too.

    Replies are no such calls.

    Attributes:
        over: "episode" averages over episodes, "run" sums them.
    """

    bounds = (0, math.inf)
    over: Literal["episode", "run"] = "episode"

    def measure(self, episode: Episode) -> float | None:
        return inner(episode, "calls")

    def aggregate(self, numbers: Sequence[float]) -> Statistic:
        return total(numbers) if self.over == "run" else super().aggregate(numbers)
