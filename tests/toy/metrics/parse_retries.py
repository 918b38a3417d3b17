"""How often a reply was asked for again."""

from harness.api import Episode, Metric, plugin


@plugin
class ParseRetries(Metric):
    """Re-asks in the episode."""

    def measure(self, episode: Episode) -> float | None:
        return float(sum(max(0, len(move.calls) - 1) for move in episode.moves()))
