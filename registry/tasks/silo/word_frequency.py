"""SILO-Bench I-02 (Table 9)."""

from __future__ import annotations

import random
from collections.abc import Sequence

from harness.api import Facts, plugin
from harness.extensions.networks.answers import INTEGER
from harness.extensions.networks.sharded import Items, ShardedTask

FRUITS = ["apple", "banana", "cherry", "date", "elderberry", "fig", "grape", "kiwi"]


@plugin
class WordFrequency(ShardedTask):
    """I-02 Word Frequency: the number of occurrences of one word in all lists of words.

    Random words of seven fruits; every tenth word of a shard is "apple", which is counted. Hardened: seven of eight
    fruits, and any of the eight is counted, so the answer may be 0.
    """

    items: Items = 30

    problem = "I-02"
    level = "I"
    question = (
        'Count how often the word "{word}" occurs in all the text distributed among the agents. Each agent holds a '
        'portion of a larger list of words. Only words that are exactly "{word}", in the same case, count. The '
        "correct answer is the number of occurrences in the entire distributed list; it may be 0. You must coordinate "
        "with other agents to determine this global count."
    )
    form = INTEGER
    credit = "number"

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[str]], Facts]:
        """Uniform words of seven; in the paper's domain every tenth word of a shard is an apple."""
        paper = self.domain == "paper"
        fruits = FRUITS[:7] if paper else rng.sample(FRUITS, 7)
        shards = [[rng.choice(fruits) for _ in range(self.items)] for _ in range(n)]
        if not paper:
            return shards, {"word": rng.choice(FRUITS)}
        for shard in shards:
            shard[9::10] = ["apple"] * len(shard[9::10])
        return shards, {"word": "apple"}

    def solve(self, shards: Sequence[Sequence[str]], public: Facts) -> int:
        """The number of words equal to `word`."""
        return sum(shard.count(public["word"]) for shard in shards)
