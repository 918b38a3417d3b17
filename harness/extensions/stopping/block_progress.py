"""Which blocks of a run's episodes have ended, in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.api import Parts
from harness.api.errors import SpecError
from harness.config.plan import Job, Plan
from harness.tables import EpisodeScore

from .balanced_order import Blocks
from .covered_mean import Covered
from .until_options import PLACE


class BlockProgress:
    """Which blocks of episodes have ended, in their order.

    Attributes:
        blocks: all of them.
        block_of: id of an episode → its block.
        covered_ids: id of an episode that counts → its condition.
        done: how many blocks have ended, of the first ones.
    """

    def __init__(self, plan: Plan, episodes: Sequence[Job], covered: Covered) -> None:
        self.covered_ids: dict[str, str] = {}
        self._covered, self._seed = covered, plan.seed

        def covers(score: EpisodeScore) -> bool:
            if covered.covers(score):
                self.covered_ids[score.id] = score.condition
                return True
            return False

        self.blocks = Blocks.of(plan, episodes, covered.cluster, covers)
        if (count := len(self.blocks.ids)) < 2:
            message = f"no rule can end this run early: {covered.title} has {'one' if count else 'no'} independent case"
            hint = "Play more cases of every condition; repeats of a case, or what `cluster:` joins, are one."
            raise SpecError(message, place=PLACE, hint=hint)
        self.block_of = {name: b for b, ids in enumerate(self.blocks.ids) for name in ids}
        self._left = [len(ids) for ids in self.blocks.ids]
        self._scores: dict[int, list[EpisodeScore]] = {}
        self.done = 0

    def add(self, score: EpisodeScore) -> list[tuple[list[EpisodeScore], Mapping[str, float | Parts]]]:
        """Take an episode that has ended. Returns (scores, numbers by id) of each block that ends with it."""
        b = self.block_of[score.id]
        self._left[b] -= 1
        self._scores.setdefault(b, []).append(score)
        ended: list[tuple[list[EpisodeScore], Mapping[str, float | Parts]]] = []
        while self.done < len(self._left) and not self._left[self.done]:
            scores = self._scores.pop(self.done, [])
            numbers = {one.id: self._covered.number(one) for one in scores}
            ended.append((scores, {name: number for name, number in numbers.items() if number is not None}))
            self.done += 1
        return ended

    def blocks_of_conditions(self) -> list[list[list[str]]]:
        """The episodes that count of each condition, block by block; conditions in the order of `covered_ids`."""
        own: dict[str, list[list[str]]] = {
            condition: [[] for _ in self.blocks.ids] for condition in dict.fromkeys(self.covered_ids.values())
        }
        for name, condition in self.covered_ids.items():
            own[condition][self.block_of[name]].append(name)
        return [*own.values()]

    def lacking(self, block: int, numbers: Mapping[str, object]) -> str:
        """Why the mean of conditions' means is none of blocks: some episodes of this one have no number. "" if all
        have."""
        ids = self.blocks.ids[block] if self._covered.of_conditions else ()
        name = next((name for name in ids if name in self.covered_ids and name not in numbers), None)
        return f"{name} has no {self._covered.metric}, and conditions count alike" if name is not None else ""

    def ids_until(self, done: int) -> frozenset[str]:
        """The episodes of the first blocks."""
        return frozenset(name for ids in self.blocks.ids[:done] for name in ids)

    def record(self, done: int) -> dict[str, Any]:
        """Of the order, and of how many blocks count, for run.json."""
        return {"blocks": done, "of_blocks": len(self.blocks.ids), "order_seed": self._seed}
