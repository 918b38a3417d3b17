from __future__ import annotations

from harness.api import Episode, Metric, plugin

from ._numbers import grade


@plugin
class Solved(Metric):
    """1 if the group solved the instance completely, else 0. The mean is the share of solved instances.

    One wrong, missing or invalid answer makes the instance unsolved (AgentsNet, Section 5.1).
    """

    bounds = (0, 1)
    needs = ("solved",)

    def measure(self, episode: Episode) -> float | None:
        return grade(episode, "solved")
