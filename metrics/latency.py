from __future__ import annotations

from typing import Literal

from harness.api import Episode, Metric, plugin

from ._numbers import calls


@plugin
class Latency(Metric):
    """Seconds (or milliseconds) per model call (`mean`, the default), or of all the episode's calls (`total`).

    Missing where no call reported its time. Calls of one batch overlap, so `total` is more than the time that passed.
    """

    kind: Literal["mean", "total"] = "mean"
    unit: Literal["seconds", "milliseconds"] = "seconds"

    def measure(self, episode: Episode) -> float | None:
        seconds = [call.latency for call in calls(episode) if call.latency is not None]
        if not seconds:
            return None
        value = sum(seconds) / len(seconds) if self.kind == "mean" else sum(seconds)
        return value * 1000 if self.unit == "milliseconds" else value
