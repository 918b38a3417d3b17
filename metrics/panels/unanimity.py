from __future__ import annotations

from typing import Literal

from harness.api import Episode, Metric, plugin

from .._numbers import fact


@plugin
class Unanimity(Metric):
    """Whether and when all members of a panel give the same answer. Missing for a panel of one agent.

    Attributes:
        of: "first": the share of episodes in which all first answers agree; "ever": in which the answers of any round
            agree; "round": the number of the first such round, counted from 0, missing if there is none.
    """

    of: Literal["first", "ever", "round"] = "ever"

    needs = ("unanimous_at",)

    def __post_init__(self) -> None:
        if self.of != "round":
            self.bounds = (0, 1)  # type: ignore[misc]

    def measure(self, episode: Episode) -> float | None:
        if not episode.outcome or "unanimous_at" not in episode.outcome.facts:
            return None
        history = episode.outcome.facts.get("history")
        if history and len(history[0]) < 2:
            return None
        at = fact(episode, "unanimous_at")
        match self.of:
            case "first":
                return float(at == 0)
            case "ever":
                return float(at is not None)
            case "round":
                return at
