"""SILO-Bench I-06 (Table 9)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import reduce
from operator import xor

from harness.api import Facts, plugin
from harness.extensions.networks.answers import INTEGER
from harness.extensions.networks.sharded import Items, ShardedTask


@plugin
class ChecksumXor(ShardedTask):
    """I-06 Checksum (XOR): the bitwise exclusive or of all bytes."""

    items: Items = 20

    problem = "I-06"
    level = "I"
    question = (
        "Compute the XOR checksum of data blocks distributed among the agents. Each agent holds a portion of a larger "
        "sequence of bytes, written as integers from 0 to 255. The correct answer is the bitwise exclusive or (XOR) of "
        "all bytes across the entire distributed dataset, as a decimal integer. You must coordinate with other agents "
        "to determine this global checksum."
    )
    form = INTEGER
    credit = "number"

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[int]], Facts]:
        """Bytes."""
        return [[rng.randrange(256) for _ in range(self.items)] for _ in range(n)], {}

    def solve(self, shards: Sequence[Sequence[int]], public: Facts) -> int:
        """The exclusive or."""
        return reduce(xor, (x for shard in shards for x in shard), 0)
