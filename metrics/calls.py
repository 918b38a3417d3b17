from __future__ import annotations

from harness.api import Episode, Metric, plugin

from ._numbers import calls


@plugin
class Calls(Metric):
    """Model calls per episode, repairs included; a policy's seat makes none."""

    def measure(self, episode: Episode) -> float | None:
        return float(sum(1 for _ in calls(episode)))
