"""SILO-Bench II-18 (Table 9)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import chain

from harness.api import Facts, plugin
from harness.extensions.networks.answers import TABLE, AnswerForm
from harness.extensions.networks.sharded import Items, ShardedTask


@plugin
class ListRanking(ShardedTask):
    """II-18 List Ranking: the distance of every node of one linked list from its head.

    The nodes 0 to N·k − 1 form one list in random order and are distributed at random. The head is not given.
    """

    items: Items = 8

    problem = "II-18"
    level = "II"
    question = (
        "Rank the nodes of one linked list whose nodes are scattered across agents. The list has {nodes} nodes, with "
        'ids from 0 upwards without gaps. A node is given as {{"id": its id, "next": the id of the node after it}}; '
        "the last node of the list has next = -1, and the head is the node that no node points to. The rank of a node "
        "is the number of links from the head to it, so the head has rank 0. The answer gives the rank of every node "
        "of the list. Following the list leads from one agent's nodes to those of others."
    )
    form = AnswerForm("a JSON object from the id of each node to its rank, an integer", TABLE.schema)
    credit = "entries"

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[dict[str, int]]], Facts]:
        """A random list, distributed at random."""
        size = n * self.items
        order = rng.sample(range(size), size)
        nodes = [{"id": a, "next": b} for a, b in zip(order, [*order[1:], -1], strict=True)]
        rng.shuffle(nodes)
        return [nodes[i : i + self.items] for i in range(0, size, self.items)], {"nodes": size}

    def solve(self, shards: Sequence[Sequence[dict[str, int]]], public: Facts) -> dict[str, int]:
        """Follow the links from the one node without a predecessor."""
        successor = {node["id"]: node["next"] for node in chain.from_iterable(shards)}
        (node,) = successor.keys() - successor.values()
        ranks: dict[str, int] = {}
        while node != -1:
            ranks[str(node)] = len(ranks)
            node = successor[node]
        return ranks
