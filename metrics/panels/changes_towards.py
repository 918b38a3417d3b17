from __future__ import annotations

from typing import Literal

from harness.api import Episode, RatioMetric, plugin


@plugin
class ChangesTowards(RatioMetric):
    """Which share of all changes of answers went where others already were (the protocol's fact `changes`).

    Missing for an episode in which no member changed its answer.

    Attributes:
        towards: "heard": an answer that the member had just heard; "majority": the most frequent answer of the other
            members, or one of several.
    """

    bounds = (0, 1)

    towards: Literal["heard", "majority"] = "heard"

    needs = ("changes",)

    def parts(self, episode: Episode) -> tuple[float, float] | None:
        changes = episode.outcome.facts.get("changes") if episode.outcome else None
        if changes is None:
            return None
        key = "heard" if self.towards == "heard" else "joins"
        return float(sum(bool(change[key]) for change in changes)), float(len(changes))
