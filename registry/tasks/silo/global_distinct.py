"""SILO-Bench III-26 (Table 9)."""

from __future__ import annotations

import random
from collections.abc import Sequence

from harness.api import Facts, plugin
from harness.extensions.networks.answers import INTEGER
from harness.extensions.networks.sharded import Items, ShardedTask


@plugin
class GlobalDistinct(ShardedTask):
    """III-26 Global Distinct: the number of different values.

    Draws from 0 to ⌊N·k/2⌋ − 1, so most values occur more than once and with more than one agent.
    """

    items: Items = 30

    problem = "III-26"
    level = "III"
    question = (
        "Count the distinct values across all data distributed among the agents. Each agent holds {items} integers of "
        "a larger multiset; a value may occur several times, with one agent or with many, and counts once. The correct "
        "answer is the number of distinct values in the entire distributed dataset. Counts of different agents cannot "
        "simply be added; you may divide the range of values among yourselves, by a hash of the value for example."
    )
    form = INTEGER
    credit = "exact"

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[int]], Facts]:
        """Uniform integers; a single item is 0."""
        values = max(1, n * self.items // 2)
        return [[rng.randrange(values) for _ in range(self.items)] for _ in range(n)], {}

    def solve(self, shards: Sequence[Sequence[int]], public: Facts) -> int:
        """The size of the union."""
        return len(set().union(*shards))
