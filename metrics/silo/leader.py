from __future__ import annotations

from harness.api import Episode, Metric, plugin

from ._run import facts, leader


@plugin
class Leader(Metric):
    """Whether an agent received more than 1.5 times the mean number of messages, or read files (Appendix G.3)."""

    bounds = (0, 1)
    needs = ("received",)

    def measure(self, episode: Episode) -> float | None:
        leading = leader(episode)
        return None if leading is None or len((facts(episode) or {})["received"]) < 2 else float(leading)
