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
        run_facts = facts(episode)
        if run_facts is None or not belongs(episode, self.among):
            return None
        n = len(run_facts["received"])
        if self.count == "sends":
            total = sum(count for receivers in run_facts["sent"].values() for count, _ in receivers.values())
        else:
            total = sum(pairs(run_facts))
        return total / (n * (n - 1)) if n > 1 else 0.0
