from __future__ import annotations

from harness.api import Episode, Metric, plugin

from ._numbers import grade


@plugin
class Solved(Metric):
    """Share of instances solved completely: 1 if the whole group's answer meets the task, else 0.

    AgentsNet, Section 5.1: one wrong, missing or invalid answer makes the instance unsolved.
    """

    bounds = (0, 1)
    needs = ("solved",)

    def measure(self, episode: Episode) -> float | None:
        return grade(episode, "solved")
