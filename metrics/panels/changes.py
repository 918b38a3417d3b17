from __future__ import annotations

import math

from harness.api import Episode, Metric, plugin


@plugin
class Changes(Metric):
    """How often members of a discussion changed their answers, per episode (the protocol's fact `changes`)."""

    bounds = (0, math.inf)
    needs = ("changes",)

    def measure(self, episode: Episode) -> float | None:
        changes = episode.outcome.facts.get("changes") if episode.outcome else None
        return None if changes is None else float(len(changes))
