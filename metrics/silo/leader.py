from __future__ import annotations

from harness.api import Episode, Metric, plugin

from ._run import facts, leader


@plugin
class Leader(Metric):
    """1 if an agent received (or read) over 1.5 times the mean number of messages (files), else 0 (Appendix G.3)."""

    bounds = (0, 1)
    needs = ("received",)

    def measure(self, episode: Episode) -> float | None:
        has_leader = leader(episode)
        return None if has_leader is None or len((facts(episode) or {})["received"]) < 2 else float(has_leader)
