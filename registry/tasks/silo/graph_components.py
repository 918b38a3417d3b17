"""SILO-Bench III-23 (Table 9)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import chain

from harness.api import Facts, plugin
from harness.extensions.networks.answers import INTEGER
from harness.extensions.networks.sharded import Items, ShardedTask

from ._edges import edge_shards


@plugin
class GraphComponents(ShardedTask):
    """III-23 Graph Components: the number of connected components of a graph with distributed edges.

    10·N nodes and k draws of an edge per agent; self-loops are dropped, edges may repeat.
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

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[list[int]]], Facts]:
        """Uniform pairs."""
        return edge_shards(rng, n, self.items, 10 * n), {"nodes": 10 * n}

    def solve(self, shards: Sequence[Sequence[Sequence[int]]], public: Facts) -> int:
        """Union-find with path halving: every edge between two components leaves one fewer."""
        parent = list(range(public["nodes"]))

        def root(node: int) -> int:
            while parent[node] != node:
                parent[node] = node = parent[parent[node]]
            return node

        components = len(parent)
        for u, v in chain.from_iterable(shards):
            a, b = root(u), root(v)
            components -= a != b
            parent[a] = b
        return components
