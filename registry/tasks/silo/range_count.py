"""SILO-Bench I-05 (Table 9)."""

from __future__ import annotations

import random
from collections.abc import Sequence

from harness.api import Facts, plugin
from harness.extensions.networks.answers import INTEGER
from harness.extensions.networks.sharded import Items, ShardedTask


@plugin
class RangeCount(ShardedTask):
    """I-05 Range Count: the number of integers between two bounds, both included."""

    items: Items = 30

    problem = "I-05"
    level = "I"
    question = (
        "Count the integers from {low} to {high}, both ends included, across all data distributed among the agents. "
        "Each agent holds a portion of a larger array. The correct answer is the number of elements x of the entire "
        "distributed dataset with {low} <= x <= {high}; equal elements count separately. You must coordinate with "
        "other agents to determine this global count."
    )
    form = INTEGER
    credit = "number"

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[int]], Facts]:
        """Integers from 0 to 1,000; the bounds are 100 and 500."""
        return [[rng.randint(0, 1000) for _ in range(self.items)] for _ in range(n)], {"low": 100, "high": 500}

    def solve(self, shards: Sequence[Sequence[int]], public: Facts) -> int:
        """The number of elements within the bounds."""
        return sum(public["low"] <= x <= public["high"] for shard in shards for x in shard)
