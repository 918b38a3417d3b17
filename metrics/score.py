from __future__ import annotations

from harness.api import Episode, Metric, plugin

from ._numbers import grade


@plugin
class Score(Metric):
    """Soft score of the answers, from 0 to 1, as the task defines it (for networks AgentsNet, Appendix B).

    Compare models on one task with it, not tasks with each other. A task may give it another scale, such as a
    perplexity: where a number lies beyond 0 and 1, these are no bounds of the run's intervals.
    """

    bounds = (0, 1)
    needs = ("score",)

    def measure(self, episode: Episode) -> float | None:
        return grade(episode, "score")
