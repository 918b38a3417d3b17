from __future__ import annotations

from harness.api import Episode, Metric, plugin

from ._numbers import fact


@plugin
class Fact(Metric):
    """Any number among the protocol's facts. True counts as 1, false as 0. Missing if an episode lacks the fact.

    Attributes:
        of: the fact's name.
        optional: allow conditions whose protocol has no such fact; the number is missing there.
    """

    of: str
    optional: bool = False

    def __post_init__(self) -> None:
        self.needs = () if self.optional else (self.of,)

    def measure(self, episode: Episode) -> float | None:
        return fact(episode, self.of)
