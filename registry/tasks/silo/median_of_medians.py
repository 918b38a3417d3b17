"""SILO-Bench III-22 (Table 9)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import chain

from harness.api import Facts, plugin
from harness.extensions.networks.answers import INTEGER
from harness.extensions.networks.sharded import Items, ShardedTask


@plugin
class MedianOfMedians(ShardedTask):
    """III-22 Median of Medians: the exact median of all integers; of an even number of them the upper median.

    Integers from 1 to 1,000. Despite its name the task asks for the true median.
    """

    items: Items = 25

    problem = "III-22"
    level = "III"
    question = (
        "Find the median of all data distributed among the agents. Each agent holds {items} integers of a larger "
        "unsorted array of L integers. The correct answer is the element at index floor(L / 2), counted from 0, of the "
        "whole array sorted in ascending order with duplicates kept; if L is even this is the larger of the two middle "
        "elements, and nothing is averaged. It is the exact median of the whole array, which the median of the agents' "
        "local medians need not be. You may narrow it down over several exchanges."
    )
    form = INTEGER
    credit = "exact"

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[int]], Facts]:
        """Uniform integers."""
        return [[rng.randint(1, 1000) for _ in range(self.items)] for _ in range(n)], {}

    def solve(self, shards: Sequence[Sequence[int]], public: Facts) -> int:
        """The element in the middle."""
        ordered = sorted(chain.from_iterable(shards))
        return ordered[len(ordered) // 2]
