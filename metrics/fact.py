from __future__ import annotations

from harness.api import Episode, Metric, plugin

from ._numbers import fact


@plugin
class Fact(Metric):
    """Any number among the protocol's facts, by its name; true counts as 1, false as 0.

    Missing if the protocol recorded nothing. With `optional: true` there is no error for conditions whose protocol
    has no such fact: a table of many methods shows what some of them have.
    """

    of: str
    optional: bool = False

    def __post_init__(self) -> None:
        self.needs = () if self.optional else (self.of,)

    def measure(self, episode: Episode) -> float | None:
        return fact(episode, self.of)
