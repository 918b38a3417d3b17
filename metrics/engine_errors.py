from __future__ import annotations

from harness.api import Episode, Metric, plugin


@plugin
class EngineErrors(Metric):
    """Turns per episode lost to the engine: refused, failed after every retry, or over the context window."""

    def measure(self, episode: Episode) -> float | None:
        return float(sum(move.error_kind not in (None, "parse", "limit") for move in episode.moves()))
