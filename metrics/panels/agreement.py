from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from harness.api import Episode, Metric, plugin


@plugin
class Agreement(Metric):
    """How far the members of a panel agree: the share of their pairs with equal answers. Missing for a panel of one.

    Attributes:
        of: "first" or "last" round of answers; "gain": the last minus the first.
    """

    bounds = (-1, 1)  # a gain may be a loss

    of: Literal["first", "last", "gain"] = "last"

    needs = ("agreement",)

    def measure(self, episode: Episode) -> float | None:
        rounds: Sequence[float | None] = episode.outcome.facts.get("agreement") or () if episode.outcome else ()
        if not rounds or rounds[0] is None or rounds[-1] is None:
            return None
        match self.of:
            case "first":
                return rounds[0]
            case "last":
                return rounds[-1]
            case "gain":
                return rounds[-1] - rounds[0]
