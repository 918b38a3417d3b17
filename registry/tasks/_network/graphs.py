"""Networks as a spec declares them: built-in families, random ones of networkx, edge lists."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, NamedTuple, NotRequired, Required, TypedDict

from harness.api import derive_seed
from harness.authoring.networks import FAMILIES, Family, Network, adjacency_of, draw_names, parts, seeded
from harness.errors import DataError, Place, PluginError, near
from harness.expressions import Compiled, Expression, compiled, names

from ..agentsnet import _edges
from . import bounds

TRIES = 100
"""Draws of a random graph until it is connected."""


class _Generator(NamedTuple):
    """Parameters of a random graph in networkx, besides the seed."""

    needed: tuple[str, ...]
    further: tuple[str, ...] = ()
    sized: bool = True


GENERATORS: dict[str, _Generator] = {
    "barabasi_albert_graph": _Generator(("m",)),
    "connected_watts_strogatz_graph": _Generator(("k", "p"), ("tries",)),
    "dual_barabasi_albert_graph": _Generator(("m1", "m2", "p")),
    "duplication_divergence_graph": _Generator(("p",)),
    "extended_barabasi_albert_graph": _Generator(("m", "p", "q")),
    "gaussian_random_partition_graph": _Generator(("s", "v", "p_in", "p_out")),
    "gnm_random_graph": _Generator(("m",)),
    "gnp_random_graph": _Generator(("p",)),
    "newman_watts_strogatz_graph": _Generator(("k", "p")),
    "planted_partition_graph": _Generator(("l", "k", "p_in", "p_out"), sized=False),
    "powerlaw_cluster_graph": _Generator(("m", "p")),
    "random_geometric_graph": _Generator(("radius",)),
    "random_partition_graph": _Generator(("sizes", "p_in", "p_out"), sized=False),
    "random_regular_graph": _Generator(("d",)),
    "relaxed_caveman_graph": _Generator(("l", "k", "p"), sized=False),
    "soft_random_geometric_graph": _Generator(("radius",)),
    "stochastic_block_model": _Generator(("sizes", "p"), sized=False),
    "watts_strogatz_graph": _Generator(("k", "p")),
    "waxman_graph": _Generator((), ("beta", "alpha")),
}
"""The random graphs of networkx that a spec may name. `sized`: whether `size` is their number of nodes."""


class RandomGraphs(TypedDict):
    """A random family of networkx: `{random: gnp_random_graph, parameters: {p: 0.3}}`."""

    random: Required[Annotated[str, "a generator of networkx"]]
    parameters: NotRequired[
        Annotated[
            dict[str, Expression | list[Any]],
            "its parameters besides the number of nodes and the seed: numbers, or expressions over n",
        ]
    ]


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
        self._parameters: dict[str, Compiled | list[Any]] = {}
        if isinstance(graphs, Mapping) and "random" in graphs:
            self._check_random(graphs)
        elif isinstance(graphs, str):
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
            yield from (self._random(sample, seed) for sample in range(samples))
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

    # ----------------------------------------------------------------------------------- networkx

    @property
    def _place(self) -> Place | None:
        """Where the spec has the first parameter that is an expression."""
        texts = (value.text for value in self._parameters.values() if isinstance(value, Compiled))
        return next((text.place for text in texts if isinstance(text, Expression)), None)

    def _check_random(self, entry: Any) -> None:
        name, parameters = entry["random"], entry.get("parameters", {})
        generator = GENERATORS.get(name)
        if generator is None:
            raise PluginError(
                f"there is no random graph {name!r}", hint=near(name, GENERATORS), at=("graphs", "random")
            )
        known = (*generator.needed, *generator.further)
        for key, value in parameters.items():
            if key not in known:
                hint = near(key, known) + (" The number of nodes is `size`." if key == "n" else "")
                raise PluginError(f"{name} has no parameter {key!r} here", hint=hint, at=("graphs", "parameters", key))
            self._parameters[key] = value if isinstance(value, list) else compiled(value, ("n",))
        if missing := [key for key in generator.needed if key not in parameters]:
            what = f"{name} needs the parameter{'s' * (len(missing) > 1)} {', '.join(missing)}"
            raise PluginError(what, at=("graphs", "parameters") if parameters else ("graphs",))

    def _random(self, sample: int, seed: int) -> Network:
        import networkx as nx

        entry: Any = self.graphs
        name = entry["random"]
        values = names({"n": self.size})
        arguments = {
            key: value.value(values) if isinstance(value, Compiled) else value
            for key, value in self._parameters.items()
        }
        if GENERATORS[name].sized:
            arguments["n"] = self.size
        parts_of_seed = sorted((key, value) for key, value in arguments.items() if key != "n")
        rng = random.Random(derive_seed("network", name, self.size, parts_of_seed, sample, seed))
        deadline = bounds.deadline()
        for _ in range(TRIES):
            try:
                bounds.check(name, arguments)
                graph = getattr(nx, name)(**arguments, seed=bounds.Draws(rng.randrange(2**31), deadline))
            except (
                nx.NetworkXException, ValueError, TypeError, ZeroDivisionError, IndexError, OverflowError,
                bounds.TooMuchError,
            ) as error:  # fmt: skip
                call = ", ".join(f"{key}={value}" for key, value in arguments.items())
                raise PluginError(f"{name}({call}) fails: {error}", place=self._place, at=("graphs",)) from None
            order = {node: i for i, node in enumerate(graph)}
            edges = [(order[u], order[v]) for u, v in graph.edges if u != v]
            network = Network(
                f"{name.removesuffix('_graph')}-{len(order)}-{sample}",
                name.removesuffix("_graph"),
                sample,
                adjacency_of(draw_names(rng, len(order)), edges),
            )
            if len(order) > 1 and not (self.connected and len(parts(network.adjacency)) > 1):
                return network
        raise DataError(
            f"{TRIES} draws of {name} gave no connected network of {self.size} agents",
            place=self._place,
            hint="Choose parameters that make more edges, or set `connected: false` and rounds without the diameter.",
        )


__all__ = ["FAMILIES", "GENERATORS", "EdgeFile", "Graphs", "RandomGraphs", "Source"]
