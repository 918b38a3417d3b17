from __future__ import annotations

from harness.api import Episode, Metric, plugin

from ._numbers import fact


@plugin
class Rounds(Metric):
    """Rounds of communication played in the episode, as the protocol counts them."""

    needs = ("rounds",)

    def measure(self, episode: Episode) -> float | None:
        return fact(episode, "rounds")
