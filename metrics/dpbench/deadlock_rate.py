from __future__ import annotations

from harness.api import Episode, Metric, plugin

from ._table import end


@plugin
class DeadlockRate(Metric):
    """Share of episodes that end in a deadlock: 1 if this one did, else 0 (DPBench, eq. 1).

    Always 0 where the protocol breaks deadlocks instead of ending the episode: count `dpbench/deadlock_events` there.
    """

    bounds = (0, 1)
    needs = ("end",)

    def measure(self, episode: Episode) -> float | None:
        ending = end(episode)
        return None if ending is None else float(ending == "deadlock")
