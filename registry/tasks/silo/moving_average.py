"""SILO-Bench II-12 (Table 9)."""

from __future__ import annotations

import random
from collections.abc import Sequence

from harness.api import Facts, plugin
from harness.extensions.networks.answers import NUMBERS
from harness.extensions.networks.sharded import Items, ShardedTask


@plugin
class MovingAverage(ShardedTask):
    """II-12 Moving Average: the means of every three consecutive elements of the whole sequence."""

    items: Items = 15

    problem = "II-12"
    level = "II"
    question = (
        "Compute the centred moving average, with a window of 3 elements, of a sequence distributed across "
        "agents. Agent 0 holds elements [0, k), Agent 1 holds elements [k, 2k), and so on, with k = {items}. The "
        "average at position i is the mean of the elements at positions i - 1, i and i + 1; windows span the "
        "boundaries between agents. The final result should be the complete list of averages in order, for all "
        "positions of the whole sequence except its first and its last (an empty list if there are none). You must "
        "coordinate to exchange data and determine the complete list."
    )
    form = NUMBERS
    digits = 2
    credit = "entries"

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[int]], Facts]:
        """Integers from 1 to 100."""
        return [[rng.randint(1, 100) for _ in range(self.items)] for _ in range(n)], {}

    def solve(self, shards: Sequence[Sequence[int]], public: Facts) -> list[float]:
        """L − 2 means for L elements."""
        x = [item for shard in shards for item in shard]
        return [(before + here + after) / 3 for before, here, after in zip(x, x[1:], x[2:], strict=False)]
