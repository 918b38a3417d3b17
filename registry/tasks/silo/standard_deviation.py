"""SILO-Bench I-10 (Table 9)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import fsum, sqrt

from harness.api import Facts, plugin
from harness.extensions.networks.answers import NUMBER
from harness.extensions.networks.sharded import Items, ShardedTask


@plugin
class StandardDeviation(ShardedTask):
    """I-10 Standard Deviation: the population standard deviation of all numbers."""

    items: Items = 30

    problem = "I-10"
    level = "I"
    question = (
        "Compute the population standard deviation of all numbers distributed among the agents. Each agent holds a "
        "portion of a larger array. The correct answer is the square root of the mean squared deviation from the "
        "global mean, over all elements of the entire distributed dataset (divide by the number of elements, not by "
        "one less). You must coordinate with other agents to determine this global value."
    )
    form = NUMBER
    digits = 2
    credit = "number"

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[float]], Facts]:
        """Numbers from 0 to 100 with two decimals."""
        return [[rng.randint(0, 10_000) / 100 for _ in range(self.items)] for _ in range(n)], {}

    def solve(self, shards: Sequence[Sequence[float]], public: Facts) -> float:
        """The root of the mean squared distance from the mean; 0 for a single number."""
        numbers = [x for shard in shards for x in shard]
        mean = fsum(numbers) / len(numbers)
        return sqrt(fsum((x - mean) ** 2 for x in numbers) / len(numbers))
