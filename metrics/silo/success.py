from __future__ import annotations

from typing import Literal

from harness.api import Episode, Metric, plugin

from .._numbers import grade
from ._run import Among, belongs


@plugin
class Success(Metric):
    """S: the share of agents whose answer is right (Section 3.3); its mean is what the paper's tables call SR.

    With `of: run` 1 if every agent's answer is right, else 0: the share of instances solved. `among` leaves out other
    episodes: alone, teams, solved, failed, led (with an emergent leader), unled.
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
