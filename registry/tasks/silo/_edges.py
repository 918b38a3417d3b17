"""Random graphs whose edges are distributed (SILO-Bench III-23, III-24, III-28)."""

from __future__ import annotations

import random
from typing import Literal


def edge_shards(
    rng: random.Random, n: int, draws: int, nodes: int, simple: Literal["undirected", "directed"] | None = None
) -> list[list[list[int]]]:
    """Return `draws` uniform pairs [u, v] of the nodes 0 to `nodes` - 1 for each of `n` agents, without self-loops.

    `simple` also drops every edge that was drawn before for any agent; "undirected" counts [u, v] and [v, u]
    as one edge. So a shard has at most `draws` edges.
    """
    seen: set[tuple[int, ...]] = set()
    shards: list[list[list[int]]] = []
    for _ in range(n):
        shards.append([])
        for _ in range(draws):
            edge = [rng.randrange(nodes), rng.randrange(nodes)]
            key = tuple(sorted(edge) if simple == "undirected" else edge)
            if edge[0] != edge[1] and (simple is None or key not in seen):
                seen.add(key)
                shards[-1].append(edge)
    return shards
