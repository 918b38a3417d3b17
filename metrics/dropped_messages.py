from __future__ import annotations

from harness.api import Episode, Metric, plugin

from ._numbers import fact_of_all


@plugin
class DroppedMessages(Metric):
    """Messages in the episode's replies that were not sent: drafts that a later one replaced, names of no neighbor."""

    needs = ("dropped",)

    def measure(self, episode: Episode) -> float | None:
        return fact_of_all(episode, "dropped")
