from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from harness.api import Episode, Metric, PluginError, Statistic, plugin

from .._numbers import grade, total

Mode = Literal["premature", "stale", "hallucination", "boundary", "timeout"]


@plugin
class Failure(Metric):
    """Failure modes of an episode (MAS-Bench, Section 5.3), decided by rule: 1 if it shows all `modes`, else 0.

    Only episodes with a wrong answer can show one; an episode can show several. Missing if a mode is undecidable.

    - premature: an agent submitted before it could know the numbers that its answer depends on, directly or through
      others.
    - stale (shared store): an agent submitted a wrong answer after another agent had changed or deleted a key that it
      had read and not read again.
    - hallucination: an agent submitted a number that is in no list; or it could know all it needed and submitted a
      number twice, or left out one between its smallest and its largest.
    - boundary: an agent could know all it needed and submitted a slice of the right sequence with the wrong start.
    - timeout: an agent submitted nothing.

    Attributes:
        modes: the modes, at least one.
        count: sum over episodes instead of averaging.
    """

    modes: list[Mode]
    count: bool = False

    bounds = (0, 1)
    needs = ("premature", "stale", "hallucination", "boundary", "timeout")

    def __post_init__(self) -> None:
        if not self.modes:
            raise PluginError("modes is empty", hint="Name at least one: premature, stale, hallucination, …")

    def measure(self, episode: Episode) -> float | None:
        grades = [grade(episode, mode) for mode in self.modes]
        return None if None in grades else float(all(grades))

    def aggregate(self, numbers: Sequence[float]) -> Statistic:
        return total(numbers) if self.count else super().aggregate(numbers)
