from __future__ import annotations

from harness.api import Episode, Metric, plugin

from ._table import deadlocks


@plugin
class DeadlockEvents(Metric):
    """Deadlocks per episode. There can be several if the protocol breaks them and goes on."""

    needs = ("deadlocks",)

    def measure(self, episode: Episode) -> float | None:
        events = deadlocks(episode)
        return None if events is None else float(len(events))
