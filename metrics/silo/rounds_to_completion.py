from __future__ import annotations

from harness.api import Episode, Metric, plugin

from .._numbers import fact
from ._run import Among, belongs


@plugin
class RoundsToCompletion(Metric):
    """The number of the last round (SILO-Bench, Table 16)."""

    among: Among = "all"

    needs = ("rounds",)

    def measure(self, episode: Episode) -> float | None:
        return fact(episode, "rounds") if belongs(episode, self.among) else None
