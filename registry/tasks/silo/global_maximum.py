"""SILO-Bench I-01 (Appendix B.2; Table 9)."""

from __future__ import annotations

import random
from collections.abc import Sequence

from harness.api import Facts, plugin
from harness.extensions.networks.answers import INTEGER
from harness.extensions.networks.sharded import Items, ShardedTask


@plugin
class GlobalMaximum(ShardedTask):
    """I-01 Global Maximum: the largest of all integers.

    Integers from −1,000 to 1,000. Hardened: −10^6 to 10^6, because at large N the maximum is nearly always 1,000.
    """

    items: Items = 20

    problem = "I-01"
    level = "I"
    question = (
        "Find the maximum value across all data distributed among the agents. Each agent holds a portion of a larger "
        "array. The correct answer is the single largest integer across the entire distributed dataset. You must "
        "coordinate with other agents to determine this global maximum."
    )
    form = INTEGER
    credit = "number"

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[int]], Facts]:
        """Uniform integers."""
        bound = 1000 if self.domain == "paper" else 10**6
        return [[rng.randint(-bound, bound) for _ in range(self.items)] for _ in range(n)], {}

    def solve(self, shards: Sequence[Sequence[int]], public: Facts) -> int:
        """The maximum."""
        return max(map(max, shards))
