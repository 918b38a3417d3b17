from __future__ import annotations

import math

from harness.api import Episode, plugin

from ._inner import inner
from ._numbers import EpisodeTotal


@plugin
class InnerCalls(EpisodeTotal):
    """Calls that agents' programs make of a model of the run (`inner`), those of failed turns too.

    Replies are no such calls.
    """

    bounds = (0, math.inf)

    def measure(self, episode: Episode) -> float | None:
        return inner(episode, "calls")
