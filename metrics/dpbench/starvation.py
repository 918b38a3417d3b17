from __future__ import annotations

from harness.api import Episode, Metric, plugin

from ._table import meals


@plugin
class Starvation(Metric):
    """Philosophers that never ate in the episode (DPBench, Section 3.2)."""

    needs = ("eaten",)

    def measure(self, episode: Episode) -> float | None:
        eaten = meals(episode)
        return None if eaten is None else float(eaten.count(0))
