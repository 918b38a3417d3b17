from __future__ import annotations

from typing import Literal

from harness.api import Episode, Metric, plugin

from ._run import Among, belongs, facts, pairs


@plugin
class Density(Metric):
    """D: messages over N (N − 1), the ordered pairs of agents (Section 3.3, equation 5).

    `count: peers` is the definition: a broadcast reaches N − 1 peers and counts as often, a file counts for each read
    by somebody else. `count: sends` counts every sending, broadcast or written file once, which is what the published
    figures fit. 0 for a single agent.
    """

    count: Literal["peers", "sends"] = "peers"
    among: Among = "all"

    needs = ("sent", "received", "reads")

    def measure(self, episode: Episode) -> float | None:
        found = facts(episode)
        if found is None or not belongs(episode, self.among):
            return None
        n = len(found["received"])
        if self.count == "sends":
            total = sum(count for receivers in found["sent"].values() for count, _ in receivers.values())
        else:
            total = sum(pairs(found))
        return total / (n * (n - 1)) if n > 1 else 0.0
