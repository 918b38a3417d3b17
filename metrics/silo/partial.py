from __future__ import annotations

from harness.api import Episode, Metric, plugin

from .._numbers import grade


@plugin
class Partial(Metric):
    """P: partial correctness, the agents' mean credit (Section 3.3); at least S."""

    bounds = (0, 1)
    needs = ("partial",)

    def measure(self, episode: Episode) -> float | None:
        return grade(episode, "partial")
