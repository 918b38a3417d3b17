"""SILO-Bench I-04 (Table 9)."""

from __future__ import annotations

import random
from collections.abc import Sequence

from harness.api import Facts, plugin
from harness.extensions.networks.answers import TRUTH
from harness.extensions.networks.sharded import Items, ShardedTask

PARTS = ["auth", "cache", "database", "gateway", "scheduler", "storage"]


@plugin
class AnyMatch(ShardedTask):
    """I-04 Any Match: whether any log line contains ERROR.

    One line of one agent does in every second instance on average; none does in the others.
    """

    items: Items = 15

    problem = "I-04"
    level = "I"
    question = (
        'Decide whether any log line in the entire distributed dataset contains the text "ERROR" (in capital letters). '
        "Each agent holds a portion of the lines of a larger log. The correct answer is true if at least one line of "
        "at least one agent contains it, and false if no line does. You must coordinate with other agents to determine "
        "this global answer."
    )
    form = TRUTH

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[str]], Facts]:
        """Log lines of three levels; with probability 1/2 one has the level ERROR."""

        def line(level: str) -> str:
            return f"{level} {rng.choice(PARTS)}: request {rng.randint(1000, 9999)} took {rng.randint(1, 900)} ms"

        shards = [[line(rng.choice(("DEBUG", "INFO", "WARN"))) for _ in range(self.items)] for _ in range(n)]
        if rng.random() < 0.5:
            shards[rng.randrange(n)][rng.randrange(self.items)] = line("ERROR")
        return shards, {}

    def solve(self, shards: Sequence[Sequence[str]], public: Facts) -> bool:
        """True if there is a match."""
        return bool(_holders(shards))

    def needed_agents(self, agent: int, shards: Sequence[Sequence[str]], public: Facts) -> Sequence[int]:
        """Any agent with a match, possibly itself; all agents if there is no match."""
        return [1 << i for i in _holders(shards)] or super().needed_agents(agent, shards, public)


def _holders(shards: Sequence[Sequence[str]]) -> list[int]:
    return [i for i, shard in enumerate(shards) if any("ERROR" in line for line in shard)]
