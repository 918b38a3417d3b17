from __future__ import annotations

from typing import Literal

from harness.api import Episode, Metric, plugin

from .._numbers import grade
from ._run import Among, belongs


@plugin
class Success(Metric):
    """S: the share of agents with a right answer (SILO-Bench, Section 3.3). The paper's tables call its mean SR.

    Attributes:
        of: "agents": that share; "run": 1 if every answer is right, else 0.
        among: the episodes that count: "alone" (one agent has the whole input) or "teams", "solved" or "failed", "led"
            (with an emergent leader) or "unled", or "all".
    """

    bounds = (0, 1)

    of: Literal["agents", "run"] = "agents"
    among: Among = "all"

    needs = ("success",)

    def measure(self, episode: Episode) -> float | None:
        success = grade(episode, "success")
        if success is None or not belongs(episode, self.among):
            return None
        return success if self.of == "agents" else float(success == 1)
