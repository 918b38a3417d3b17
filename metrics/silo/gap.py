from __future__ import annotations

from harness.api import Episode, Metric, plugin

from .._numbers import grade


@plugin
class Gap(Metric):
    """P − S: partial minus full correctness (SILO-Bench, Section 4.2)."""

    needs = ("success", "partial")

    def measure(self, episode: Episode) -> float | None:
        success, partial = grade(episode, "success"), grade(episode, "partial")
        return None if success is None or partial is None else partial - success
