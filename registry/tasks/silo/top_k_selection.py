"""SILO-Bench I-09 (Table 9)."""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence

from harness.api import Facts, plugin
from harness.extensions.networks.answers import INTEGERS
from harness.extensions.networks.sharded import Items, ShardedTask


@plugin
class TopKSelection(ShardedTask):
    """I-09 Top-K Selection: the ten largest integers, duplicates kept, largest first."""

    items: Items = 30

    problem = "I-09"
    level = "I"
    question = (
        "Find the {top} largest values across all data distributed among the agents. Each agent holds a portion of a "
        "larger array. The correct answer lists the {top} largest elements of the entire distributed dataset in "
        "descending order; a value that occurs several times counts each time. If there are fewer than {top} elements, "
        "it lists all of them. You must coordinate with other agents to determine this global selection."
    )
    form = INTEGERS

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[int]], Facts]:
        """Integers from 1 to 1,000."""
        return [[rng.randint(1, 1000) for _ in range(self.items)] for _ in range(n)], {"top": 10}

    def solve(self, shards: Sequence[Sequence[int]], public: Facts) -> list[int]:
        """The `top` largest, in descending order."""
        return heapq.nlargest(public["top"], (x for shard in shards for x in shard))
