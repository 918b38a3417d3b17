from __future__ import annotations

import math

from harness.api import Episode, Metric, plugin


@plugin
class ParseRetries(Metric):
    """Calls per episode beyond the first of their turn: how often an unreadable reply was asked for again."""

    bounds = (0, math.inf)

    def measure(self, episode: Episode) -> float | None:
        return float(sum(len(move.calls) - 1 for move in episode.moves() if move.calls))
