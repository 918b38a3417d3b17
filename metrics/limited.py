from __future__ import annotations

from harness.api import Episode, Metric, plugin


@plugin
class Limited(Metric):
    """1 if an agent reached a limit of the spec (`limits:`), else 0. The mean is the share of such episodes."""

    bounds = (0, 1)

    def measure(self, episode: Episode) -> float | None:
        return float(any(move.asked_no_more for move in episode.moves()))
