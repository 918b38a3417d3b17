"""SILO-Bench I-08 (Table 9)."""

from __future__ import annotations

import random
from collections.abc import Sequence

from harness.api import Facts, plugin
from harness.extensions.networks.answers import INTEGER
from harness.extensions.networks.sharded import Items, ShardedTask


@plugin
class SetUnionSize(ShardedTask):
    """I-08 Set Union Size: the number of different integers."""

    items: Items = 30

    problem = "I-08"
    level = "I"
    question = (
        "Compute the size of the union of sets distributed among the agents. Each agent holds a list of integers; the "
        "same integer may occur several times, with one agent or with different agents. The correct answer is the "
        "number of distinct integers across the entire distributed dataset. You must coordinate with other agents to "
        "determine the size of this global union."
    )
    form = INTEGER
    credit = "number"

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[int]], Facts]:
        """L draws from 0 to ⌊L/2⌋ − 1, L = n · items (a single draw is 0)."""
        size = max(1, n * self.items // 2)
        return [[rng.randrange(size) for _ in range(self.items)] for _ in range(n)], {}

    def solve(self, shards: Sequence[Sequence[int]], public: Facts) -> int:
        """The size of the union."""
        return len(set().union(*shards))
