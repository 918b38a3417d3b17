from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from harness.api import Episode, Metric, PluginError, Statistic, plugin

from .._numbers import grade, total


@plugin
class Failure(Metric):
    """Failure modes of an episode (SILO-Bench, Appendix G.2): 1 if it shows all `modes`, else 0.

    An episode without a wrong answer shows none.

    - premature: an agent submitted before it could know the data that its answer depends on.
    - consensus: agents submitted different answers to one question. It does not apply where every agent answers for its
      own part.
    - computation: an agent could know all it needed and submitted a wrong answer.
    - timeout: an agent submitted nothing.

    Attributes:
        modes: the modes, at least one.
        count: sum over episodes instead of averaging (Table 15).
    """

    modes: list[Literal["premature", "consensus", "computation", "timeout"]]
    count: bool = False

    def __post_init__(self) -> None:
        if not self.modes:
            raise PluginError("modes is empty", hint="Name at least one: premature, consensus, computation, timeout.")

    bounds = (0, 1)
    needs = ("premature", "consensus", "computation", "timeout")

    def measure(self, episode: Episode) -> float | None:
        if not episode.grade or episode.grade.get("premature") is None:
            return None
        return float(all(grade(episode, mode) == 1 for mode in self.modes))

    def aggregate(self, numbers: Sequence[float]) -> Statistic:
        return total(numbers) if self.count else super().aggregate(numbers)
