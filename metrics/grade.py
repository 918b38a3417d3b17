from __future__ import annotations

from harness.api import Episode, Metric, plugin

from ._numbers import grade


@plugin
class Grade(Metric):
    """Any number of the task's grade, such as an entry of a data set's `metric_list`, or `answered`.

    Attributes:
        of: the grade's name.
        optional: allow conditions whose task has no such grade; the number is missing there.
    """

    of: str = "score"
    optional: bool = False

    def __post_init__(self) -> None:
        self.needs = () if self.optional else (self.of,)

    def measure(self, episode: Episode) -> float | None:
        return grade(episode, self.of)
