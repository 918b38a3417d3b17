from __future__ import annotations

from typing import Literal

from harness.api import Episode, Metric, plugin

from ._run import Among, belongs, facts, reached_pairs


@plugin
class Density(Metric):
    """D: messages divided by N (N − 1), the ordered pairs of agents (SILO-Bench, Section 3.3, equation 5).

    0 for a single agent.

    Attributes:
        count: "peers", the paper's definition: a broadcast counts N − 1 times, a file once for each read by another
            agent. "sends" counts every message, broadcast and written file once, which fits the published results.
        among: the episodes that count, as in `silo/success`.
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
            total = sum(reached_pairs(run_facts))
        return total / (n * (n - 1)) if n > 1 else 0.0
