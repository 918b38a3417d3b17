"""Graphs of the seats of one role: each edge goes from an earlier seat to a later one, so none of them is a loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from harness.api import PluginError, derive_seed
from harness.extensions.networks import FAMILIES
from harness.extensions.yaml_tasks import graph_bounds
from harness.extensions.yaml_tasks.random_graphs import RandomGraph, RandomGraphs

Family = Literal[
    "chain", "star", "tree", "mesh", "layered", "random", "small_world", "scale_free", "delaunay", "grid", "ring"
]
Within = Family | RandomGraphs
_Edges = Iterable[tuple[int, int]]


def _layered(n: int) -> _Edges:
    """Layers of ⌈√n⌉ seats; each seat hears the whole layer before its own."""
    width = math.isqrt(n - 1) + 1
    return ((i, j) for j in range(width, n) for i in range((j // width - 1) * width, j // width * width))


_PLAIN: dict[str, Callable[[int], _Edges]] = {
    "chain": lambda n: ((i - 1, i) for i in range(1, n)),
    "star": lambda n: ((0, i) for i in range(1, n)),
    "tree": lambda n: (((i - 1) // 2, i) for i in range(1, n)),
    "mesh": lambda n: ((i, j) for j in range(n) for i in range(j)),
    "layered": _layered,
}


def edges_within(within: Within, n: int, seed: int, at: tuple[str | int, ...]) -> list[tuple[int, int]]:
    """Return the edges of a graph over the places 0 … n - 1, each (earlier, later), sorted.

    What is random is drawn from `seed`, the same graph in every episode, and its edges directed. "random" is G(n, p)
    with p = 2 ln(n)/n, in one piece; other families are those of networks (`harness.extensions.networks`), or of
    networkx. Raises `PluginError`, at `at`, for a family of networkx that cannot be drawn.
    """
    if not isinstance(within, str):
        graph = RandomGraph(within, at, "agents")
        count, drawn = graph.draw(n, derive_seed("team", graph.name, n, seed) % 2**31, graph_bounds.deadline())
        if count != n:
            message = f"{graph.name} gives {count} seats for a role of {n}"
            raise PluginError(message, hint=f"Set agents: {count}.", place=graph.place, at=at)
        return sorted({(min(edge), max(edge)) for edge in drawn})
    if n < 2:
        return []
    if within in _PLAIN:
        return sorted(_PLAIN[within](n))
    name = "erdos_renyi" if within == "random" else within
    families: Mapping[str, Callable[[int, int], _Edges]] = {str(key): draw for key, draw in FAMILIES.items()}
    edges = families[name](n, derive_seed("team", name, n, seed) % 2**31)
    return sorted({(min(edge), max(edge)) for edge in edges})
