from __future__ import annotations

from typing import Literal

from harness.api import Episode, Metric, plugin

from .._numbers import grade


@plugin
class Success(Metric):
    """SR: the share of agents that submitted the right answer (Section 3.4, equation 4).

    With `of: run` 1 if every agent did, else 0: an instance is successful iff SR = 1. With `of: check` what the global
    check says of all submissions together (Appendix F.2, CHECK), which comes to the same.
    """

    bounds = (0, 1)

    of: Literal["agents", "run", "check"] = "agents"

    needs = ("success", "check")

    def measure(self, episode: Episode) -> float | None:
        if self.of == "check":
            return grade(episode, "check")
        success = grade(episode, "success")
        return success if success is None or self.of == "agents" else float(success == 1)
