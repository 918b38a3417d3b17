"""`solved` in a second reading, for groups with byzantine agents."""

from __future__ import annotations

from harness.api import Episode, Metric, plugin

from .._numbers import grade


@plugin
class SolvedHonest(Metric):
    """1 if the instance is solved even when an answer that names a byzantine neighbor never counts, else 0.

    AgentsNet, Appendix I, leaves open how to grade an honest agent whose answer names a byzantine one. Only the
    matching task has both readings. For other problems, and without byzantine agents, this equals `solved`.
    """

    bounds = (0, 1)
    needs = ("solved",)

    def measure(self, episode: Episode) -> float | None:
        return grade(episode, "solved_honest" if "solved_honest" in episode.grade else "solved")
