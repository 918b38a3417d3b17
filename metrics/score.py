from __future__ import annotations

from harness.api import Episode, Metric, plugin

from ._numbers import grade


@plugin
class Score(Metric):
    """Soft score of the answers, between 0 and 1, as the task defines it.

    AgentsNet, Appendix B. Comparable between models on one task, not between tasks.
    """

    needs = ("score",)

    def measure(self, episode: Episode) -> float | None:
        return grade(episode, "score")
