"""SILO-Bench III-21 (Appendix B.2; Table 9)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import chain
from typing import Literal

from harness.api import Case, Facts, plugin
from harness.extensions.networks.answers import INTEGERS
from harness.extensions.networks.sharded import Items, ShardedTask

_WHOLE = "The final result should be the complete sorted sequence."
_CHUNK = (
    "The sorted sequence is cut into as many consecutive chunks as there are agents, of {items} elements each; chunk 0 "
    "has the smallest elements. Agent i submits chunk i of the sorted sequence."
)


@plugin
class DistributedSort(ShardedTask):
    """III-21 Distributed Sort: all elements in ascending order, duplicates kept. Integers from 1 to 1,000.

    Attributes:
        sort_output: "global", every agent submits the complete sorted sequence (Appendix B.2); "segment", agent i
            submits chunk i of it. The input is the same for both.
    """

    items: Items = 20
    sort_output: Literal["global", "segment"] = "global"

    problem = "III-21"
    level = "III"
    question = (
        "Sort the entire distributed array in ascending order. Each agent holds a portion of the unsorted data. "
        f"{_WHOLE} You must coordinate to exchange data and determine the correct global ordering."
    )
    form = INTEGERS
    credit = "sequence"

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[int]], Facts]:
        """Uniform integers."""
        return [[rng.randint(1, 1000) for _ in range(self.items)] for _ in range(n)], {"output": self.sort_output}

    def solve(self, shards: Sequence[Sequence[int]], public: Facts) -> list[int] | list[list[int]]:
        """The sorted sequence; in chunks as long as the shards if agents submit their own."""
        ordered = sorted(chain.from_iterable(shards))
        rest = iter(ordered)
        return [[next(rest) for _ in shard] for shard in shards] if self.segmented(public) else ordered

    def segmented(self, public: Facts) -> bool:
        """Whether `sort_output` is "segment"."""
        return bool(public["output"] == "segment")

    def context(self, case: Case, agent: str) -> Facts:
        """The context of sharded tasks. An agent with the whole input always submits the whole sequence."""
        context = super().context(case, agent)
        if self.whole or not self.segmented(case.public["known"]):
            return context
        return {**context, "task": context["task"].replace(_WHOLE, _CHUNK.format(items=self.items))}
