from __future__ import annotations

from harness.api import Episode, Metric, plugin

from ._table import deadlocks, end


@plugin
class TimeToDeadlock(Metric):
    """The timestep, counted from 1, after which the episode ended in deadlock (DPBench, Section 3.2).

    Missing in episodes that did not: the mean is over those that did. If all take the left fork at once, 1.
    """

    needs = ("end", "deadlocks")

    def measure(self, episode: Episode) -> float | None:
        events = deadlocks(episode)
        return float(events[-1]) if events and end(episode) == "deadlock" else None
