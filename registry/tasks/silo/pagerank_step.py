"""SILO-Bench III-28 (Table 9)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import chain

from harness.api import Facts, plugin
from harness.extensions.networks.answers import TABLE, AnswerForm
from harness.extensions.networks.sharded import Items, ShardedTask

from ._edges import edge_shards

_DAMPING = 0.85


@plugin
class PagerankStep(ShardedTask):
    """III-28 PageRank Step: the rank of every node after one iteration from equal ranks.

    8·N nodes and k draws of a directed edge per agent; self-loops and repeated edges are dropped. The rank
    of nodes without outgoing edges is lost.
    """

    items: Items = 16

    problem = "III-28"
    level = "III"
    question = (
        "Perform one iteration of PageRank on a directed graph whose edges are distributed among the agents. The graph "
        "has M = {nodes} nodes, numbered from 0 upwards without gaps. Each agent holds some of its edges as pairs [u, "
        "v], from u to v. Before the iteration every node has rank 1 / M. The new rank of a node v is (1 - d) / M + d "
        "* (sum, over all edges from any u to v, of the old rank of u divided by the number of u's outgoing edges), "
        "with damping d = {damping}. Both the edges to v and the outgoing edges of each u may be held by any agents. "
        "The rank of nodes without outgoing edges is passed on to nobody and not redistributed. The answer gives the "
        "new rank of every one of the {nodes} nodes."
    )
    form = AnswerForm("a JSON object from the number of each node to its new rank", TABLE.schema)
    digits = 6
    credit = "entries"

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[list[int]]], Facts]:
        """Uniform pairs, every edge once."""
        return edge_shards(rng, n, self.items, 8 * n, "directed"), {"nodes": 8 * n, "damping": _DAMPING}

    def solve(self, shards: Sequence[Sequence[Sequence[int]]], public: Facts) -> dict[str, float]:
        """One sparse product of matrix and vector."""
        edges, nodes, damping = list(chain.from_iterable(shards)), public["nodes"], public["damping"]
        outgoing = Counter(u for u, _ in edges)
        incoming = dict.fromkeys(range(nodes), 0.0)
        for u, v in edges:
            incoming[v] += 1 / outgoing[u]
        return {str(v): (1 - damping + damping * share) / nodes for v, share in incoming.items()}
