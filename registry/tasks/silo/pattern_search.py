"""SILO-Bench II-15 (Table 9)."""

from __future__ import annotations

import random
from collections.abc import Sequence

from harness.api import Facts, plugin
from harness.extensions.networks.answers import INTEGER
from harness.extensions.networks.sharded import Items, ShardedTask


@plugin
class PatternSearch(ShardedTask):
    """II-15 Pattern Search: the number of disjoint subsequences A…B…C in a scan from left to right."""

    items: Items = 20

    problem = "II-15"
    level = "II"
    question = (
        "Count the occurrences of the pattern ABC as a subsequence of a text distributed across agents. Agent 0 "
        "holds characters [0, k), Agent 1 holds characters [k, 2k), and so on, with k = {items}. An occurrence is "
        "found by reading the whole text from left to right: the first A, then the first B after it, then the first C "
        "after that, whatever other letters lie between. The next occurrence begins only after that C, so that "
        "occurrences never overlap; incomplete ones do not count, and occurrences may span several agents. The correct "
        "answer is the number of occurrences in the whole text. You must coordinate with other agents to determine "
        "this global count."
    )
    form = INTEGER

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[str], Facts]:
        """Uniform letters of A, B, C, D, X, Y and Z."""
        return ["".join(rng.choices("ABCDXYZ", k=self.items)) for _ in range(n)], {}

    def solve(self, shards: Sequence[str], public: Facts) -> int:
        """An automaton that waits for one letter of the pattern after another."""
        matched = 0
        for letter in "".join(shards):
            matched += letter == "ABC"[matched % 3]
        return matched // 3
