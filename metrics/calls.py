from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from harness.api import Episode, Metric, Statistic, plugin

from ._numbers import calls, total


@plugin
class Calls(Metric):
    """Model calls per episode, parse retries included, or of all episodes together; a policy makes none.

    `over: run` adds up the episodes that a number stands for (DPBench, Table 5) instead of averaging them; episodes
    that failed or never ran are not in the sum.
    """

    over: Literal["episode", "run"] = "episode"

    def measure(self, episode: Episode) -> float | None:
        return float(sum(1 for _ in calls(episode)))

    def aggregate(self, numbers: Sequence[float]) -> Statistic:
        return total(numbers) if self.over == "run" else super().aggregate(numbers)
