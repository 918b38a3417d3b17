from __future__ import annotations

from harness.api import UNBOUNDED, Bounds, Episode, Metric, PluginError, plugin

from ._numbers import grade


@plugin
class Grade(Metric):
    """Any number of the task's grade, such as an entry of a data set's `metric_list`, or `answered`.

    Attributes:
        of: the grade's name.
        optional: allow conditions whose task has no such grade; the number is missing there.
        bounds: between which numbers it lies, such as [0, 1] of a share: no interval then leaves them.
    """

    of: str = "score"
    optional: bool = False
    bounds: Bounds = UNBOUNDED  # type: ignore[misc]

    def __post_init__(self) -> None:
        self.needs = () if self.optional else (self.of,)
        if not self.bounds[0] < self.bounds[1]:
            raise PluginError(f"no number lies between {self.bounds[0]} and {self.bounds[1]}", at=("bounds",))

    def measure(self, episode: Episode) -> float | None:
        number = grade(episode, self.of)
        if number is not None and not self.bounds[0] <= number <= self.bounds[1]:
            raise ValueError(
                f"grade {self.of!r} is {number}, which is not between {self.bounds[0]} and {self.bounds[1]}"
            )
        return number
