from __future__ import annotations

from harness.api import Episode, Metric, plugin

from .._numbers import grade


@plugin
class InversionRate(Metric):
    """ρ: the share of pairs of the input that are in the wrong order (MAS-Bench, Section 3.3, equation 3)."""

    bounds = (0, 1)
    needs = ("inversion_rate",)

    def measure(self, episode: Episode) -> float | None:
        return grade(episode, "inversion_rate")
