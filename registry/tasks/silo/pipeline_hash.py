"""SILO-Bench II-20 (Table 9)."""

from __future__ import annotations

import random
import string
from collections.abc import Sequence

from harness.api import Facts, plugin
from harness.extensions.networks.answers import INTEGERS
from harness.extensions.networks.sharded import Items, ShardedTask

_CHARACTERS = string.ascii_letters + string.digits + "_"


@plugin
class PipelineHash(ShardedTask):
    """II-20 Pipeline Hash: hashes of the agent's own blocks, each chained to the block before it.

    Blocks of 12 to 40 letters, digits and underscores. Their sums stay below 4,900 and hashes below 8,192, so the two
    reductions modulo 10,000 belong to the definition but change nothing.
    """

    items: Items = 5

    problem = "II-20"
    level = "II"
    question = (
        "Compute chained hashes of a sequence of text blocks distributed across agents. Agent 0 holds blocks [0, k), "
        "Agent 1 holds blocks [k, 2k), and so on, with k = {items}. The hash of a block is ((S mod 10000) XOR P) mod "
        "10000, where S is the sum of the character codes (Unicode code points, as ord in Python) of all characters of "
        "the block, XOR is bitwise exclusive or, and P is the hash of the block before it in the whole sequence; for "
        "the very first block P is 0. The answer is the list of the hashes of your own blocks, in order. A block's "
        "hash depends on all blocks before it, those of preceding agents included."
    )
    form = INTEGERS
    segments = True
    credit = "entries"

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[str]], Facts]:
        """Random texts."""
        return [["".join(rng.choices(_CHARACTERS, k=rng.randint(12, 40))) for _ in range(self.items)]
                for _ in range(n)], {}  # fmt: skip

    def solve(self, shards: Sequence[Sequence[str]], public: Facts) -> list[list[int]]:
        """One pass over all blocks."""
        hashes: list[list[int]] = []
        previous = 0
        for shard in shards:
            hashes.append([])
            for block in shard:
                previous = (sum(map(ord, block)) % 10_000 ^ previous) % 10_000
                hashes[-1].append(previous)
        return hashes

    def needed_agents(self, agent: int, shards: Sequence[Sequence[str]], public: Facts) -> Sequence[int]:
        """The agent's own shard and those before it."""
        return [(2 << agent) - 1]
