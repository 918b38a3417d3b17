from __future__ import annotations

from typing import Literal

from harness.api import Episode, Metric, plugin

from .._numbers import fact, grade


@plugin
class Override(Metric):
    """Share of episodes in which a guardrail replaced the coordinator's answer. Missing without a guardrail.

    The paper (DarkForest, Table 9) does not define its wrong overrides, and neither reading fits all of its results.

    Attributes:
        which: "all" overrides; "wrong", those with a wrong final answer; "harmful", wrong ones that replaced a right
            answer of the coordinator.
        of: the grade that is 1 for a right answer: `score` of data sets, `success` of sharded tasks, …
    """

    bounds = (0, 1)

    which: Literal["all", "wrong", "harmful"] = "all"
    of: str = "score"

    def __post_init__(self) -> None:
        needs: dict[str, tuple[str, ...]] = {"all": (), "wrong": (self.of,), "harmful": (self.of, "proposal")}
        self.needs = needs[self.which]

    def measure(self, episode: Episode) -> float | None:
        overridden = fact(episode, "overridden")
        if not overridden or self.which == "all":
            return overridden
        score, proposal = grade(episode, self.of), grade(episode, "proposal")
        if score is None:
            return None
        return float(score < 1 and (self.which == "wrong" or proposal == 1))
