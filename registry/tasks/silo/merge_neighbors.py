"""SILO-Bench II-19 (Table 9)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import chain, groupby

from harness.api import Facts, plugin
from harness.extensions.networks.answers import INTEGERS
from harness.extensions.networks.sharded import Items, ShardedTask


@plugin
class MergeNeighbors(ShardedTask):
    """II-19 Merge Neighbors: the sorted sequence with equal neighbors merged into one.

    Integers from 1 to 50, sorted and then distributed. Hardened: 1 to 10·N, because with many agents the paper's
    sequence nearly always has every number from 1 to 50.
    """

    items: Items = 15

    problem = "II-19"
    level = "II"
    question = (
        "Merge equal neighbors of a sorted sequence distributed across agents. The sequence is in ascending order; "
        "Agent 0 holds elements [0, k), Agent 1 holds elements [k, 2k), and so on, with k = {items}, so a run of "
        "equal values may go on from one agent to the next. Every run of equal values is merged into a single element. "
        "The answer is the complete merged sequence over all agents: every value once, in ascending order. You may "
        "exchange boundary elements with your neighbors."
    )
    form = INTEGERS
    credit = "entries"

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[int]], Facts]:
        """Uniform integers, sorted, in consecutive shards."""
        size, bound = n * self.items, 50 if self.domain == "paper" else 10 * n
        ordered = sorted(rng.randint(1, bound) for _ in range(size))
        return [ordered[i : i + self.items] for i in range(0, size, self.items)], {}

    def solve(self, shards: Sequence[Sequence[int]], public: Facts) -> list[int]:
        """One of each run."""
        return [value for value, _ in groupby(chain.from_iterable(shards))]
