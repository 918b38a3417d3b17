from __future__ import annotations

import math

from harness.api import Episode, plugin

from ._numbers import EpisodeTotal, calls


@plugin
class Calls(EpisodeTotal):
    """Model calls per episode, parse retries included. Policies make no calls.

    Attributes:
        over: "episode" averages over episodes; "run" sums them (DPBench, Table 5). The sum leaves out episodes that
            failed or never ran.
    """

    bounds = (0, math.inf)

    def measure(self, episode: Episode) -> float | None:
        return float(sum(1 for _ in calls(episode)))
