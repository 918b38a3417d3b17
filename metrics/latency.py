from __future__ import annotations

import math
from typing import Literal

from harness.api import Episode, Metric, plugin

from ._numbers import calls


@plugin
class Latency(Metric):
    """Time of the episode's model calls. Missing if no call reports its time.

    Attributes:
        kind: "mean" per call, or the "total" of all calls. Calls of one batch overlap, so the total exceeds the time
            that passed.
        unit: "seconds" or "milliseconds".
    """

    bounds = (0, math.inf)
    kind: Literal["mean", "total"] = "mean"
    unit: Literal["seconds", "milliseconds"] = "seconds"

    def measure(self, episode: Episode) -> float | None:
        seconds = [call.latency for call in calls(episode) if call.latency is not None]
        if not seconds:
            return None
        value = sum(seconds) / len(seconds) if self.kind == "mean" else sum(seconds)
        return value * 1000 if self.unit == "milliseconds" else value
