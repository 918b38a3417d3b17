from __future__ import annotations

from harness.api import Episode, Metric, plugin

from ._table import end


@plugin
class DeadlockRate(Metric):
    """Share of episodes that end in a deadlock: 1 if this one did, else 0 (DPBench, eq. 1).

    0 in every episode whose protocol breaks deadlocks instead of ending; `dpbench/deadlock_events` counts these.
    """

    bounds = (0, 1)
    needs = ("end",)

    def measure(self, episode: Episode) -> float | None:
        how = end(episode)
        return None if how is None else float(how == "deadlock")
