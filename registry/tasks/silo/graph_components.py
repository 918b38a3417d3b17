"""SILO-Bench III-23 (Table 9)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import chain

from harness.api import Facts, plugin
from harness.authoring.sharded import Items, ShardedTask
from harness.replies.answer import INTEGER

from ._edges import edge_shards


@plugin
class GraphComponents(ShardedTask):
    """III-23 Graph Components: how many connected components a graph has whose edges are distributed.

    10·N nodes and k draws of an edge an agent; self-loops are dropped, the same edge may be drawn more than once.
    """

    items: Items = 20

    problem = "III-23"
    level = "III"
    question = (
        "Count the connected components of an undirected graph whose edges are distributed among the agents. The graph "
        "has {nodes} nodes, numbered from 0 upwards without gaps. Each agent holds some of its edges as pairs [u, v]; "
        "the same edge may occur more than once. Two nodes are in one component if a path of edges, whoever holds "
        "them, leads from one to the other; a node without any edge is a component of its own and counts. The correct "
        "answer is the number of components of the whole graph. General paradigms such as union-find may help."
    )
    form = INTEGER
    credit = "exact"

    def draw(self, rng: random.Random, n: int) -> tuple[list[list[list[int]]], Facts]:
        """Uniform pairs."""
        return edge_shards(rng, n, self.items, 10 * n), {"nodes": 10 * n}

    def solve(self, shards: Sequence[Sequence[Sequence[int]]], known: Facts) -> int:
        """Union-find with path halving: every edge between two components leaves one fewer."""
        above = list(range(known["nodes"]))

        def root(node: int) -> int:
            while above[node] != node:
                above[node] = node = above[above[node]]
            return node

        components = len(above)
        for u, v in chain.from_iterable(shards):
            a, b = root(u), root(v)
            components -= a != b
            above[a] = b
        return components
