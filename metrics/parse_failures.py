from __future__ import annotations

import math

from harness.api import Episode, Metric, plugin


@plugin
class ParseFailures(Metric):
    """Turns per episode without a readable reply, even after every parse retry."""

    bounds = (0, math.inf)

    def measure(self, episode: Episode) -> float | None:
        return float(sum(move.error_kind == "parse" for move in episode.moves()))
