from __future__ import annotations

from harness.api import Episode, Metric, plugin

from .._numbers import fact
from ._table import meals


@plugin
class MealsPerRound(Metric):
    """Meals of all philosophers per round. In a round every agent acts once, so both orders of play are comparable."""

    needs = ("eaten", "rounds")

    def measure(self, episode: Episode) -> float | None:
        eaten, rounds = meals(episode), fact(episode, "rounds")
        return sum(eaten) / rounds if eaten is not None and rounds else None
