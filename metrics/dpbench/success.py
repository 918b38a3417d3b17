from __future__ import annotations

from harness.api import Episode, Metric, plugin

from ._table import deadlocks, end, meals


@plugin
class Success(Metric):
    """Share of episodes without a deadlock in which some philosopher ate: 1 if this is one, else 0.

    Not a metric of DPBench. Its deadlock rate is 0 at a table where all do nothing, and its fairness is 1 there; such a
    table has 0 here, and so has one that deadlocks, also where a deadlock does not end the episode.
    """

    bounds = (0, 1)
    needs = ("end", "deadlocks", "eaten")

    def measure(self, episode: Episode) -> float | None:
        ending, eaten = end(episode), meals(episode)
        if ending is None or eaten is None:
            return None
        return float(ending != "deadlock" and not deadlocks(episode) and any(eaten))
