"""Graphs of the seats of one role: each edge goes from an earlier seat to a later one, so none of them is a loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from harness.api import derive_seed
from harness.authoring.networks import FAMILIES

Within = Literal[
    "chain", "star", "tree", "mesh", "layered", "random", "small_world", "scale_free", "delaunay", "grid", "ring"
]
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


def edges_within(family: Within, n: int, seed: int) -> list[tuple[int, int]]:
    """Return the edges of a family over the places 0 … n - 1, each (earlier, later), sorted.

    "random" and the families of networks (`harness.authoring.networks`) are drawn from `seed`, and their edges
    directed: the same graph in every episode. "random" is G(n, p) with p = 2 ln(n)/n, in one piece.
    """
    if n < 2:
        return []
    if family in _PLAIN:
        return sorted(_PLAIN[family](n))
    name = "erdos_renyi" if family == "random" else family
    families: Mapping[str, Callable[[int, int], _Edges]] = {**FAMILIES}
    drawn = families[name](n, derive_seed("team", name, n, seed) % 2**31)
    return sorted({(min(edge), max(edge)) for edge in drawn})
