"""The other reading of solved with byzantine agents."""

from __future__ import annotations

from harness.api import Episode, Metric, plugin

from .._numbers import grade


@plugin
class SolvedHonest(Metric):
    """1 if solved even when naming a byzantine neighbor never counts; AgentsNet's matching has both readings.

    AgentsNet, Appendix I, leaves open what an honest agent's answer is worth that names a byzantine one.
    For problems in which no agent is named, and without byzantine agents, this is `solved`.
    """

    bounds = (0, 1)
    needs = ("solved",)

    def measure(self, episode: Episode) -> float | None:
        return grade(episode, "solved_honest" if "solved_honest" in episode.grade else "solved")
