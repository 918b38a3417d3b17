"""A run that plays its first blocks of episodes and waits for more: a side of a comparison that is not decided yet."""

from __future__ import annotations

from collections.abc import Sequence

from harness.api import Facts
from harness.config.plan import Job, Plan
from harness.runtime.stopping import StoppingRule
from harness.tables import EpisodeScore

from .block_progress import BlockProgress
from .covered_mean import Covered


class FirstBlocks(StoppingRule):
    """Ends a run after its first blocks.

    Args:
        count: how many.
        covered: which number is compared.
        at: what the comparison is to come to.
        enough: a sentence for readers of the run's tables.
    """

    def __init__(self, count: int, covered: Covered, at: str, enough: str) -> None:
        self._count, self._covered, self._at, self._enough = count, covered, at, enough

    def begin(self, plan: Plan, episodes: Sequence[Job]) -> None:
        self._progress = BlockProgress(plan, episodes, self._covered)
        self.order = self._progress.blocks.order

    def add(self, score: EpisodeScore) -> None:
        self._progress.add(score)
        whole = len(self._progress.blocks.ids)
        if self.reached is None and self._count <= self._progress.done and self._count < whole:
            self.counted = self._progress.ids_until(self._count)
            self.reached = f"{self._count:,} of {whole:,} blocks of episodes are played"

    def is_due(self, episode: str) -> bool:
        return self._progress.block_of[episode] < self._count

    def record(self) -> Facts:
        return {"by": "compare --until", "at": self._at, "enough": self._enough, **self._progress.record(self._count)}
