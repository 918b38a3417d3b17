"""Communication networks: the families of AgentsNet (Section 3.2, Appendix D), its two published suites, and more.

A graph is a list of edges over the nodes 0 … n-1; the order of the edges fixes the order in which agents
see their neighbors. networkx, numpy and scipy are imported only where a family needs them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from harness.api import derive_seed
from harness.errors import DataError, PluginError

from ._names import draw

if TYPE_CHECKING:
    import networkx as nx

Family = Literal["small_world", "scale_free", "delaunay", "erdos_renyi", "grid", "ring", "tree", "star", "complete"]
Edges = list[tuple[int, int]]
Adjacency = Mapping[str, tuple[str, ...]]
"""Agent → its neighbors, both in graph order."""

PUBLISHED: tuple[Family, ...] = ("small_world", "scale_free", "delaunay")
SUITES = ((4, 8, 16), tuple(range(20, 101, 10)))
"""Numbers of agents in the benchmark of 27 graphs (Section 5.1) and in the scale-up of 81 (Section 5.2)."""


@dataclass(frozen=True, slots=True)
class Network:
    """One communication graph with its agents' names."""

    id: str
    family: str
    sample: int
    adjacency: Adjacency


# ---------------------------------------------------------------------------------------- families


def small_world(n: int, seed: int) -> Edges:
    """Connected Watts–Strogatz graph: four neighbors each, an edge rewired with probability 0.4."""
    import networkx as nx

    return list(nx.connected_watts_strogatz_graph(n, min(4, n), 0.4, seed=seed).edges)


def scale_free(n: int, seed: int) -> Edges:
    """Barabási–Albert graph: every new node attaches to two others."""
    import networkx as nx

    return list(nx.barabasi_albert_graph(n, min(2, n - 1), seed=seed).edges)


def delaunay(n: int, seed: int) -> Edges:
    """Delaunay triangulation of n uniform points in the unit square; nodes in the order of sampling."""
    if n < 4:
        return complete(n, seed)
    import networkx as nx
    import numpy as np
    from scipy.spatial import Delaunay

    graph = nx.empty_graph(n)
    for a, b, c in Delaunay(np.random.RandomState(seed % 2**32).rand(n, 2)).simplices.tolist():
        graph.add_edges_from(((a, b), (b, c), (c, a)))
    return list(graph.edges)


def erdos_renyi(n: int, seed: int) -> Edges:
    """G(n, p) with p = 2 ln(n)/n, which is connected almost always; drawn again until it is."""
    import math

    import networkx as nx

    rng = random.Random(seed)
    while True:
        graph: nx.Graph[int] = nx.fast_gnp_random_graph(n, min(1.0, 2 * math.log(n) / n), seed=rng)
        if nx.is_connected(graph):
            return list(graph.edges)


def grid(n: int, seed: int) -> Edges:
    """Rows of ⌈√n⌉ nodes, each joined to the next in its row and below it; the last row may be shorter."""
    width = next(w for w in range(1, n + 1) if w * w >= n)
    return [(i, j) for i in range(n) for j in (i + 1, i + width) if j < n and (j == i + width or j % width)]


def ring(n: int, seed: int) -> Edges:
    """A cycle; two nodes share one edge."""
    return [(i, i + 1) for i in range(n - 1)] + ([(0, n - 1)] if n > 2 else [])


def tree(n: int, seed: int) -> Edges:
    """A labelled tree drawn uniformly, from its Prüfer sequence."""
    if n < 3:
        return ring(n, seed)
    import networkx as nx

    rng = random.Random(seed)
    return list(nx.from_prufer_sequence([rng.randrange(n) for _ in range(n - 2)]).edges)


def star(n: int, seed: int) -> Edges:
    """Node 0 is joined to all others."""
    return [(0, i) for i in range(1, n)]


def complete(n: int, seed: int) -> Edges:
    """Everybody is joined to everybody; n(n-1)/2 edges."""
    return [(i, j) for i in range(n) for j in range(i + 1, n)]


FAMILIES: dict[Family, Callable[[int, int], Edges]] = {
    "small_world": small_world,
    "scale_free": scale_free,
    "delaunay": delaunay,
    "erdos_renyi": erdos_renyi,
    "grid": grid,
    "ring": ring,
    "tree": tree,
    "star": star,
    "complete": complete,
}


# ---------------------------------------------------------------------------------------- networks


def named(names: Iterable[str], edges: Iterable[tuple[int, int]]) -> Adjacency:
    """The neighbors of every agent, when node i is the agent with the i-th name."""
    agents = list(names)
    lists: dict[str, list[str]] = {name: [] for name in agents}
    for u, v in edges:
        lists[agents[u]].append(agents[v])
        lists[agents[v]].append(agents[u])
    return {name: tuple(neighbors) for name, neighbors in lists.items()}


@lru_cache(maxsize=2)
def _draws(sizes: tuple[int, ...]) -> dict[tuple[str, int], list[tuple[int, list[str]]]]:
    """(family, size) → graph seed and names of each of the three samples of a published suite.

    One stream seeded with 42 gives the three graph seeds 1825, 410 and 4507, which every family and size
    share, and then the names, graph by graph. So the names of a graph depend on its place in the suite.
    """
    rng = random.Random(42)
    seeds = [rng.randint(1, 10000) for _ in range(3)]
    return {(family, n): [(seed, draw(rng, n)) for seed in seeds] for family in PUBLISHED for n in sizes}


def published(family: Family, size: int, samples: int) -> Iterator[Network]:
    """The graphs of the paper's two suites.

    Raises:
        PluginError: for a family, size or number of samples that the paper does not have.
    """
    suite = next((sizes for sizes in SUITES if size in sizes), None)
    if suite is None or family not in PUBLISHED or samples > 3:
        sizes = ", ".join(str(n) for sizes in SUITES for n in sizes)
        raise PluginError(
            f"the published suites have no {samples} {family} graphs of {size} agents",
            hint=f"They have 3 samples of {', '.join(PUBLISHED)} with {sizes} agents each. "
            "For anything else say `source: seeded`.",
        )
    for sample, (seed, names) in enumerate(_draws(suite)[family, size][:samples]):
        yield Network(f"{family}-{size}-{sample}", family, sample, named(names, FAMILIES[family](size, seed)))


def seeded(family: Family, size: int, samples: int, seed: int) -> Iterator[Network]:
    """`samples` graphs of any family and size, other ones for every seed."""
    for sample in range(samples):
        rng = random.Random(derive_seed("agentsnet", family, size, sample, seed))
        edges = FAMILIES[family](size, rng.randrange(2**31))
        yield Network(f"{family}-{size}-{sample}", family, sample, named(draw(rng, size), edges))


# ----------------------------------------------------------------------------------------- lengths


def parts(adjacency: Adjacency) -> list[list[str]]:
    """The connected parts, each in breadth-first order."""
    seen: set[str] = set()
    found = []
    for start in adjacency:
        if start not in seen:
            seen.add(start)
            found.append([start])
            for agent in found[-1]:  # grows while it is gone through
                fresh = [neighbor for neighbor in adjacency[agent] if neighbor not in seen]
                seen.update(fresh)
                found[-1] += fresh
    return found


def diameter(adjacency: Adjacency) -> int:
    """The longest shortest path in hops: the rounds until everybody has heard of everybody.

    Floods the whole network at once with a set of agents as the bits of an integer: D·m·n/64 machine words
    of work and n²/8 bytes, 0.3 s and 25 MB for 10,000 agents of a small world.

    Raises:
        DataError: if the network is not connected.
    """
    heard = {agent: 1 << i for i, agent in enumerate(adjacency)}
    everybody = (1 << len(heard)) - 1
    waiting, rounds = [agent for agent in heard if heard[agent] != everybody], 0
    while waiting:
        fresh = {}
        for agent in waiting:
            fresh[agent] = heard[agent]
            for neighbor in adjacency[agent]:
                fresh[agent] |= heard[neighbor]
        if all(heard[agent] == now for agent, now in fresh.items()):
            raise DataError(disconnected("the network", parts(adjacency)))
        heard |= fresh
        waiting, rounds = [agent for agent in waiting if heard[agent] != everybody], rounds + 1
    return rounds


def disconnected(what: str, pieces: list[list[str]]) -> str:
    """Says that and into which parts `what` falls."""
    sizes = ", ".join(str(len(piece)) for piece in sorted(pieces, key=len, reverse=True)[:5])
    more = ", …" if len(pieces) > 5 else ""
    return f"{what} is not connected: it falls into {len(pieces)} parts of {sizes}{more} agents"
