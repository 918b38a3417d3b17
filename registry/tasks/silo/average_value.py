"""SILO-Bench I-07 (Table 9)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import fsum

from harness.api import Facts, plugin
from harness.extensions.networks.answers import NUMBER
from harness.extensions.networks.sharded import Items, ShardedTask


@plugin
class AverageValue(ShardedTask):
    """I-07 Average Value: the arithmetic mean of all numbers."""

    items: Items = 25

    problem = "I-07"
    level = "I"
    question = (
        "Compute the average of all numbers distributed among the agents. Each agent holds a portion of a larger "
        "array. The correct answer is the sum of all elements of the entire distributed dataset divided by their "
        "number. You must coordinate with other agents to determine this global average."
    )
    form = NUMBER
    digits = 2
    credit = "number"

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[float]], Facts]:
        """Numbers from 0 to 100 with two decimals."""
        return [[rng.randint(0, 10_000) / 100 for _ in range(self.items)] for _ in range(n)], {}

    def solve(self, shards: Sequence[Sequence[float]], public: Facts) -> float:
        """The mean over all elements, whatever the lengths of the shards."""
        return fsum(x for shard in shards for x in shard) / sum(map(len, shards))
