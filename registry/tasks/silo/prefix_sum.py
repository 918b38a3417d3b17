"""SILO-Bench II-11 (Appendix B.2; Table 9)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate

from harness.api import Facts, plugin
from harness.extensions.networks.answers import INTEGERS
from harness.extensions.networks.sharded import Items, ShardedTask


@plugin
class PrefixSum(ShardedTask):
    """II-11 Prefix Sum: the inclusive prefix sums of the whole sequence at the agent's own places."""

    items: Items = 15

    problem = "II-11"
    level = "II"
    question = (
        "Compute the prefix sum array for a sequence distributed across agents. Agent 0 holds elements [0, k), Agent "
        "1 holds elements [k, 2k), and so on. The prefix sum at position i is the sum of all elements from position "
        "0 to i. You must coordinate to compute the correct prefix sum for your portion, accounting for cumulative "
        "sums from preceding agents."
    )
    form = INTEGERS
    segments = True
    credit = "entries"

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[int]], Facts]:
        """Integers from 1 to 50."""
        return [[rng.randint(1, 50) for _ in range(self.items)] for _ in range(n)], {}

    def solve(self, shards: Sequence[Sequence[int]], public: Facts) -> list[list[int]]:
        """Prefix sums of the whole sequence, in parts as long as the shards."""
        sums, before = [], 0
        for shard in shards:
            sums.append([before + s for s in accumulate(shard)])
            before += sum(shard)
        return sums

    def needed_agents(self, agent: int, shards: Sequence[Sequence[int]], public: Facts) -> Sequence[int]:
        """The agent's own shard and those before it."""
        return [(2 << agent) - 1]
