from __future__ import annotations

from harness.api import Episode, Metric, plugin

from .._numbers import grade


@plugin
class Partial(Metric):
    """P: partial correctness, the mean credit of the agents (SILO-Bench, Section 3.3). At least S."""

    bounds = (0, 1)
    needs = ("partial",)

    def measure(self, episode: Episode) -> float | None:
        return grade(episode, "partial")
