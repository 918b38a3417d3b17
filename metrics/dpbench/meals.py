from __future__ import annotations

from harness.api import Episode, Metric, plugin

from ._table import meals


@plugin
class Meals(Metric):
    """Meals of all philosophers in the episode."""

    needs = ("eaten",)

    def measure(self, episode: Episode) -> float | None:
        eaten = meals(episode)
        return None if eaten is None else float(sum(eaten))
