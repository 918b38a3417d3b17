"""SILO-Bench II-17 (Table 9)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import chain, pairwise

from harness.api import Facts, plugin
from harness.extensions.networks.answers import INTEGERS
from harness.extensions.networks.sharded import Items, ShardedTask


@plugin
class DiffArray(ShardedTask):
    """II-17 Diff Array: each element of the whole sequence, except the first, minus the one before it.

    Integers from 1 to 100. The first element has no difference, so there are N·k − 1 of them.
    """

    items: Items = 15

    problem = "II-17"
    level = "II"
    question = (
        "Compute the difference array of a sequence distributed across agents. Agent 0 holds elements [0, k), Agent "
        "1 holds elements [k, 2k), and so on, with k = {items}. The difference at position j, for every j from 1 to "
        "the last position of the whole sequence, is element j minus element j - 1; the first element has none. The "
        "answer is the complete difference array of the whole sequence, which is one shorter than the sequence. "
        "Differences between elements that different agents hold count as well."
    )
    form = INTEGERS
    credit = "entries"

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[int]], Facts]:
        """Uniform integers."""
        return [[rng.randint(1, 100) for _ in range(self.items)] for _ in range(n)], {}

    def solve(self, shards: Sequence[Sequence[int]], public: Facts) -> list[int]:
        """Differences of consecutive elements."""
        return [after - before for before, after in pairwise(chain.from_iterable(shards))]
