from __future__ import annotations

from harness.api import Episode, Metric, plugin

from .._numbers import fact
from ._run import Among, belongs, facts


@plugin
class MessagesPerAgent(Metric):
    """Messages, broadcasts and written files per agent (SILO-Bench, Table 16)."""

    among: Among = "all"

    needs = ("messages", "received")

    def measure(self, episode: Episode) -> float | None:
        run_facts, sent = facts(episode), fact(episode, "messages")
        if run_facts is None or sent is None or not belongs(episode, self.among):
            return None
        return sent / len(run_facts["received"])
