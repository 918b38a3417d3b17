"""SILO-Bench II-16 (Table 9)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate

from harness.api import Facts, plugin
from harness.extensions.networks.answers import INTEGER
from harness.extensions.networks.sharded import Items, ShardedTask


@plugin
class TrappingRain(ShardedTask):
    """II-16 Trapping Rain: the amount of water that stays on the whole elevation map.

    Heights from 0 to 10: about every third column is a peak of 6 to 10 units; the others have 0 to 5.
    """

    items: Items = 10

    problem = "II-16"
    level = "II"
    question = (
        "Compute how many units of rain water are trapped by an elevation map distributed across agents. Agent 0 holds "
        "the heights of columns [0, k), Agent 1 those of columns [k, 2k), and so on, with k = {items}; all columns "
        "are one unit wide. Water above a column rises to the lower of the highest column to its left and the highest "
        "to its right, and runs off at both ends of the whole map, but not at the boundaries between agents. The "
        "correct answer is the total amount of water on the entire map. You must coordinate with other agents to "
        "determine this global total, accounting for the highest columns on either side of each portion."
    )
    form = INTEGER

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[int]], Facts]:
        """A peak with probability 1/3, else a low column."""
        heights = [rng.randint(6, 10) if rng.random() < 1 / 3 else rng.randint(0, 5) for _ in range(n * self.items)]
        return [heights[i : i + self.items] for i in range(0, len(heights), self.items)], {}

    def solve(self, shards: Sequence[Sequence[int]], public: Facts) -> int:
        """The sum over columns of the lower of both running maxima, minus the height."""
        heights = [height for shard in shards for height in shard]
        left, right = accumulate(heights, max), reversed(list(accumulate(reversed(heights), max)))
        return sum(min(walls) - height for height, *walls in zip(heights, left, right, strict=True))
