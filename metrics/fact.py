from __future__ import annotations

from harness.api import Episode, plugin

from ._numbers import NamedNumber, fact


@plugin
class Fact(NamedNumber):
    """Any number among the protocol's facts. True counts as 1, false as 0. Missing if an episode lacks the fact.

    Attributes:
        of: the fact's name.
        optional: allow conditions whose protocol has no such fact; the number is missing there.
        bounds: between which numbers it lies, such as [0, 1] of a share: no interval then leaves them.
    """

    def measure(self, episode: Episode) -> float | None:
        return self.within(fact(episode, self.of))
