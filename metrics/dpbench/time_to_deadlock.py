from __future__ import annotations

from harness.api import Episode, Metric, plugin

from ._table import deadlocks, end


@plugin
class TimeToDeadlock(Metric):
    """The timestep, counted from 1, after which the episode ended in deadlock (DPBench, Section 3.2).

    Missing in other episodes, so the mean covers deadlocked ones only. It is 1 if all take the left fork at once.
    """

    needs = ("end", "deadlocks")

    def measure(self, episode: Episode) -> float | None:
        events = deadlocks(episode)
        return float(events[-1]) if events and end(episode) == "deadlock" else None
