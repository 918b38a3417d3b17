from __future__ import annotations

from harness.api import Episode, Metric, plugin

from ._table import deadlocks


@plugin
class DeadlockEvents(Metric):
    """Deadlocks per episode; more than one if the protocol breaks them and goes on."""

    needs = ("deadlocks",)

    def measure(self, episode: Episode) -> float | None:
        found = deadlocks(episode)
        return None if found is None else float(len(found))
