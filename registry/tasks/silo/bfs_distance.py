"""SILO-Bench III-24 (Table 9)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import chain

from harness.api import Facts, plugin
from harness.extensions.networks.answers import TABLE, AnswerForm
from harness.extensions.networks.sharded import Items, ShardedTask

from ._edges import edge_shards


@plugin
class BfsDistance(ShardedTask):
    """III-24 BFS Distance: the distance of every node of a graph from node 0 in edges; −1 without a path.

    8·N nodes and k draws of an undirected edge per agent; self-loops and repeated edges are dropped.
    """

    items: Items = 16

    problem = "III-24"
    level = "III"
    question = (
        "Compute the shortest distance from node 0 to every node of an undirected, unweighted graph whose edges are "
        "distributed among the agents. The graph has {nodes} nodes, numbered from 0 upwards without gaps. Each agent "
        "holds some of its edges as pairs [u, v], which can be used in both directions. The distance of a node is the "
        "smallest number of edges, whoever holds them, on a path from node 0 to it: 0 for node 0 itself, -1 for a node "
        "that no path reaches. The answer has an entry for every one of the {nodes} nodes."
    )
    form = AnswerForm("a JSON object from the number of each node to its distance, an integer", TABLE.schema)
    credit = "entries"

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[list[int]]], Facts]:
        """Uniform pairs, every edge once."""
        return edge_shards(rng, n, self.items, 8 * n, "undirected"), {"nodes": 8 * n}

    def solve(self, shards: Sequence[Sequence[Sequence[int]]], public: Facts) -> dict[str, int]:
        """Breadth-first search, one ring of nodes after another."""
        neighbors: list[list[int]] = [[] for _ in range(public["nodes"])]
        for u, v in chain.from_iterable(shards):
            neighbors[u].append(v)
            neighbors[v].append(u)
        distance = {0: 0}
        ring = [0]
        while ring:
            next_ring = dict.fromkeys(
                (v for u in ring for v in neighbors[u] if v not in distance), distance[ring[0]] + 1
            )
            distance |= next_ring
            ring = list(next_ring)
        return {str(node): distance.get(node, -1) for node in range(public["nodes"])}
