"""Networks as a spec declares them: built-in families, random ones of networkx, edge lists."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, NotRequired, Required, TypedDict

from harness.api import DataError, PluginError, derive_seed
from harness.extensions.networks import FAMILIES, Family, Network, adjacency_of, draw_names, parts, seeded
from harness.extensions.yaml_tasks import graph_bounds as bounds
from harness.extensions.yaml_tasks.random_graphs import GENERATORS, RandomGraph, RandomGraphs

from ..agentsnet import _edges

TRIES = 100
"""Draws of a random graph until it is connected."""


class EdgeFile(TypedDict):
    """An edge list in a file, one pair of agents per line."""

    file: Required[Annotated[str, "its path"]]
    header: NotRequired[Annotated[bool, "whether the first line names the columns; found out if it is clear"]]


Agent = str | int
Pairs = list[tuple[Agent, Agent]]
Graphs = Family | RandomGraphs | EdgeFile | Pairs


class Source:
    """The networks that `graphs:` declares.

    Args:
        graphs: a family, a random family of networkx, an edge list, or a file that holds one.
        size: the number of agents, of families.
        connected: whether random graphs are drawn until they are connected.

    Raises:
        PluginError: if the parameter is wrong.
    """

    def __init__(self, graphs: Graphs, size: int, connected: bool) -> None:
        self.graphs, self.size, self.connected = graphs, size, connected
        entry: Any = graphs
        self._family = RandomGraph(entry) if isinstance(graphs, Mapping) and "random" in graphs else None
        if isinstance(graphs, str):
            try:
                bounds.check(graphs, {"n": size})
            except bounds.TooMuchError as error:
                raise PluginError(f"{graphs} of {size:,} agents: {error}", at=("size",)) from None
        elif isinstance(graphs, Sequence):
            self._pairs(graphs)

    @property
    def fixed(self) -> bool:
        """Whether there is one network, whatever the seed."""
        return not isinstance(self.graphs, str) and "random" not in self.graphs

    def networks(self, samples: int, seed: int) -> Iterator[Network]:
        """Yield so many networks. Raises `DataError`, `PluginError`."""
        if isinstance(self.graphs, str):
            yield from seeded(self.graphs, self.size, samples, seed)
        elif not self.fixed:
            yield from (self._drawn(sample, seed) for sample in range(samples))
        else:
            network = self.own(seed)
            for sample in range(samples):
                yield replace(network, id=f"{network.id}-{sample}", sample=sample)

    def own(self, seed: int) -> Network:
        """The network of an edge list. Raises `DataError`."""
        if isinstance(self.graphs, Mapping):
            entry: Any = self.graphs
            return _edges.read(entry["file"], seed, entry.get("header"))
        assert not isinstance(self.graphs, str)
        nodes, edges = self._pairs(self.graphs)
        agents = [str(node) for node in nodes]
        if all(isinstance(node, int) for node in nodes):
            agents = draw_names(random.Random(derive_seed("network", "edges", seed)), len(nodes))
        return Network("edges", "edges", 0, adjacency_of(agents, edges))

    def summary(self, seed: int) -> tuple[str, ...]:
        """What was read from a file, in a line."""
        if isinstance(self.graphs, Mapping) and "file" in self.graphs:
            entry: Any = self.graphs
            return (f"{entry['file']}: {_edges.summary(self.own(seed))}",)
        return ()

    @staticmethod
    def _pairs(pairs: Sequence[Any]) -> tuple[list[Any], list[tuple[int, int]]]:
        nodes: dict[Any, int] = {}
        edges: dict[frozenset[int], tuple[int, int]] = {}
        for i, (a, b) in enumerate(pairs):
            for node in (a, b):
                if not str(node).strip() or not str(node).isprintable() or str(node).lower() == "none":
                    raise PluginError(f"{node!r} cannot be an agent's name", at=("graphs", i))
            u, v = (nodes.setdefault(node, len(nodes)) for node in (a, b))
            if u == v:
                raise PluginError(f"an agent cannot be its own neighbor: {a}", at=("graphs", i))
            edges.setdefault(frozenset((u, v)), (u, v))
        if len({str(node) for node in nodes}) < len(nodes):
            raise PluginError("an agent's name stands there as a number and as text; write it one way", at=("graphs",))
        if not nodes:
            raise PluginError("the edge list has no edges", at=("graphs",))
        return list(nodes), list(edges.values())

    def _drawn(self, sample: int, seed: int) -> Network:
        """The network of a random family."""
        family = self._family
        assert family is not None
        short = family.name.removesuffix("_graph")
        arguments = sorted((key, value) for key, value in family.arguments(self.size).items() if key != "n")
        rng = random.Random(derive_seed("network", family.name, self.size, arguments, sample, seed))
        deadline = bounds.deadline()
        for _ in range(TRIES):
            count, edges = family.draw(self.size, rng.randrange(2**31), deadline)
            network = Network(f"{short}-{count}-{sample}", short, sample, adjacency_of(draw_names(rng, count), edges))
            if count > 1 and not (self.connected and len(parts(network.adjacency)) > 1):
                return network
        raise DataError(
            f"{TRIES} draws of {family.name} gave no connected network of {self.size} agents",
            place=family.place,
            hint="Choose parameters that make more edges, or set `connected: false` and rounds without the diameter.",
        )


__all__ = ["FAMILIES", "GENERATORS", "EdgeFile", "Graphs", "RandomGraphs", "Source"]
