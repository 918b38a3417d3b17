"""SILO-Bench III-27 (Table 9)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from heapq import nsmallest
from operator import mul
from typing import Any

from harness.api import Facts, PluginError, plugin
from harness.extensions.networks.answers import ROWS, AnswerForm
from harness.extensions.networks.sharded import Items, ShardedTask


@plugin
class CollaborativeFiltering(ShardedTask):
    """III-27 Collab. Filtering: the three best matches of a user and an item by the product of their vectors.

    An agent holds k vectors of 5 numbers from −1 to 1 with two decimals: half of them users (one more if k is odd),
    the rest items. The third and the fourth best score differ; equal scores before them are ordered by number.
    """

    items: Items = 6

    problem = "III-27"
    level = "III"
    question = (
        "Find the best matches between users and items whose vectors are distributed among the agents. Each agent "
        'holds some users and some items, each as {{"id": number, "vector": list of 5 numbers}}; users and items are '
        "numbered separately, both from 0, over all agents. The score of a user and an item, whoever holds them, is "
        "the dot product of their two vectors. The answer is the list of the 3 matches of the highest score among all "
        "pairs of a user and an item (of all matches if there are fewer), highest first; equal scores are ordered by "
        "the lower user number, then the lower item number."
    )
    form = AnswerForm("a JSON list of triples [user number, item number, score]", ROWS.schema)
    digits = 4
    credit = "sequence"

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[dict[str, Any]], Facts]:
        """Uniform vectors, drawn again while the third and the fourth score are equal."""
        users, items = (self.items + 1) // 2, self.items // 2
        if not items:
            raise PluginError("1 vector per agent leaves no item to match", hint="Set `items: 2` or more.")

        def rows(agent: int, count: int) -> list[dict[str, Any]]:
            ids = range(agent * count, (agent + 1) * count)
            return [{"id": i, "vector": [rng.randint(-100, 100) / 100 for _ in range(5)]} for i in ids]

        while True:
            shards = [{"users": rows(agent, users), "items": rows(agent, items)} for agent in range(n)]
            best = _matches(shards, 4)
            if len(best) < 4 or best[2][0] != best[3][0]:
                return shards, {}

    def solve(self, shards: Sequence[dict[str, Any]], public: Facts) -> list[list[float]]:
        """The best matches in order."""
        return [[user, item, -minus / 10_000] for minus, user, item in _matches(shards, 3)]


def _matches(shards: Sequence[dict[str, Any]], count: int) -> list[tuple[int, int, int]]:
    """Return the best matches as (minus the score in ten-thousandths, which is exact; user; item)."""
    users, items = (
        [(row["id"], [round(100 * x) for x in row["vector"]]) for shard in shards for row in shard[kind]]
        for kind in ("users", "items")
    )
    return nsmallest(count, ((-sum(map(mul, u, v)), user, item) for user, u in users for item, v in items))
