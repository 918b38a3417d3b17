from __future__ import annotations

from harness.api import Episode, Metric, plugin

from ._numbers import grade


@plugin
class Grade(Metric):
    """Any number that the task's grade has, by its name: what a data set's `metric_list` names, `answered`, …

    With `optional: true` there is no error for conditions whose task has no such grade, where it is missing: a table of
    many benchmarks shows what some of them have.
    """

    of: str = "score"
    optional: bool = False

    def __post_init__(self) -> None:
        self.needs = () if self.optional else (self.of,)

    def measure(self, episode: Episode) -> float | None:
        return grade(episode, self.of)
