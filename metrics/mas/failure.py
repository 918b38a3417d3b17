from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from harness.api import Episode, Metric, Statistic, plugin
from harness.errors import PluginError

from .._numbers import grade, total

Mode = Literal["premature", "stale", "hallucination", "boundary", "timeout"]


@plugin
class Failure(Metric):
    """Failure modes of a run (Section 5.3), decided by rule: 1 if it shows all of `modes`, else 0.

    Only for runs with a wrong answer; they do not exclude one another. premature: an agent submitted before it could
    know the numbers its answer depends on, by messages or values, directly or through others. stale (shared store):
    an agent submitted a wrong answer after another agent had changed or deleted a key that it had read, and it had not
    read it again. hallucination: an agent submitted a number that is in no list, or, able to know all it needed,
    one number twice, or left out one between its smallest and its largest. boundary: an agent that could know all it
    needed submitted a slice of the right sequence that begins at another place than its own. timeout: an agent
    submitted nothing.
    Missing if a mode is undecidable. `count: true` adds the runs up.
    """

    modes: list[Mode]
    count: bool = False

    needs = ("premature", "stale", "hallucination", "boundary", "timeout")

    def __post_init__(self) -> None:
        if not self.modes:
            raise PluginError("modes is empty", hint="Name one at least: premature, stale, hallucination, …")

    def measure(self, episode: Episode) -> float | None:
        grades = [grade(episode, mode) for mode in self.modes]
        return None if None in grades else float(all(grades))

    def aggregate(self, numbers: Sequence[float]) -> Statistic:
        return total(numbers) if self.count else super().aggregate(numbers)
