"""How far a group agrees, right or wrong."""

from __future__ import annotations

from harness.api import Episode, Metric, plugin


@plugin
class Consent(Metric):
    """Share of people that name the most popular day, right or wrong."""

    needs = ("consent",)

    def measure(self, episode: Episode) -> float | None:
        """The number that the task put into the grade."""
        return episode.grade.get("consent")
