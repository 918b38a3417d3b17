"""SILO-Bench I-03 (Table 9)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from harness.api import Facts, PluginError, plugin
from harness.extensions.networks.answers import one_of
from harness.extensions.networks.sharded import Items, ShardedTask

NAMES = ["Alice", "Bob", "Carol", "Dave"]


@plugin
class DistributedVote(ShardedTask):
    """I-03 Distributed Vote: the candidate with the most votes, which are more than half of all.

    The winner has the votes at even places of every shard, and a random share of the others. So any shard alone gives
    the answer. Hardened: with 3 agents or more, more than half of the shards have another strict winner.
    """

    items: Items = 25

    problem = "I-03"
    level = "I"
    question = (
        "Determine the winner of an election whose votes are distributed among the agents. Each agent holds a portion "
        "of the vote records, one name per vote; the candidates are Alice, Bob, Carol and Dave. The correct answer is "
        "the name of the candidate with the most votes across the entire distributed dataset. Local majorities need "
        "not agree with the global one. You must coordinate with other agents to determine the global winner."
    )
    form = one_of(NAMES)

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[str]], Facts]:
        """Votes, drawn again until the winner has more than half of them."""
        winner, misled = rng.choice(NAMES), set[int]()
        others = [name for name in NAMES if name != winner]
        if self.domain == "hardened" and n > 2:
            if self.items < 8:  # the other shards may have too few votes for the winner to win overall
                message = f"a hardened vote needs at least 8 votes a shard; items is {self.items}"
                raise PluginError(message, hint="Set `items: 8` or more, or `domain: paper`.")
            misled = set(rng.sample(range(n), n // 2 + 1))
        while True:
            shards = [[winner if j % 2 == 0 else rng.choice(NAMES) for j in range(self.items)] for _ in range(n)]
            for i in misled:
                few = (self.items - 1) // 2
                shards[i] = [winner] * few + [rng.choice(others)] * (self.items - few)
                rng.shuffle(shards[i])
            if 2 * sum(shard.count(winner) for shard in shards) > n * self.items:
                return shards, {}

    def solve(self, shards: Sequence[Sequence[str]], public: Facts) -> str:
        """The most common name."""
        return Counter(name for shard in shards for name in shard).most_common(1)[0][0]
