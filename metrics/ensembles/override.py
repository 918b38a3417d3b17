from __future__ import annotations

from typing import Literal

from harness.api import Episode, Metric, plugin

from .._numbers import fact, grade


@plugin
class Override(Metric):
    """How often a guardrail replaced the coordinator's answer: a share of all episodes.

    `which`: all; wrong, those after which the final answer is not right; harmful, those of them in which the
    coordinator was right. The paper (DarkForest, Table 9) does not say which it calls wrong, and neither reading fits
    all of its figures. Missing where the protocol has no guardrail.

    `of`: the grade by which an answer is right if it is 1: `score` of data sets, `success` of sharded tasks, …
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
