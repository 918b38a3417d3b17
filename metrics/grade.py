from __future__ import annotations

from harness.api import Episode, plugin

from ._numbers import NamedNumber, grade


@plugin
class Grade(NamedNumber):
    """Any number of the task's grade, such as an entry of a data set's `metric_list`, or `answered`.

    Attributes:
        of: the grade's name.
        optional: allow conditions whose task has no such grade; the number is missing there.
        bounds: between which numbers it lies, such as [0, 1] of a share: no interval then leaves them.
    """

    of: str = "score"

    def measure(self, episode: Episode) -> float | None:
        return self.within(grade(episode, self.of))
