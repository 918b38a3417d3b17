from __future__ import annotations

import math

from harness.api import Episode, Metric, plugin


@plugin
class EngineErrors(Metric):
    """Turns per episode that the engine failed: it refused them, every retry failed, or the context was too long."""

    bounds = (0, math.inf)

    def measure(self, episode: Episode) -> float | None:
        return float(sum(move.error_kind not in (None, "parse", "limit") for move in episode.moves()))
