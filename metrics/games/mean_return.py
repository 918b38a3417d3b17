from __future__ import annotations

import statistics

from harness.api import Episode, Metric, plugin


@plugin
class MeanReturn(Metric):
    """What a group's players got from the game on average, in the game's own unit (points, chips).

    Attributes:
        group: a group of the spec's `agents:`; by default all players.
    """

    group: str | None = None

    needs = ("returns",)

    def measure(self, episode: Episode) -> float | None:
        returns = (episode.grade.get("returns") or {}).items()
        wanted = [
            value for agent, value in returns if self.group is None or episode.roles.get(agent, "default") == self.group
        ]
        return statistics.fmean(wanted) if wanted else None
