from __future__ import annotations

from typing import Literal

from harness.api import Episode, Metric, plugin

from .._numbers import grade


@plugin
class Success(Metric):
    """SR: the share of agents that submitted the right answer (MAS-Bench, Section 3.4, equation 4).

    Attributes:
        of: "agents": that share; "run": 1 if every agent is right, else 0; "check": 1 if the global check of all
            submissions passes (Appendix F.2, CHECK), which is equivalent.
    """

    bounds = (0, 1)

    of: Literal["agents", "run", "check"] = "agents"

    needs = ("success", "check")

    def measure(self, episode: Episode) -> float | None:
        if self.of == "check":
            return grade(episode, "check")
        success = grade(episode, "success")
        return success if success is None or self.of == "agents" else float(success == 1)
