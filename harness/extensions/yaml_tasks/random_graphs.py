"""Random graphs of networkx that a spec may name: `{random: gnp_random_graph, parameters: {p: 0.3}}`."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, NotRequired, Required, TypedDict

from harness.api.errors import Place, PluginError, near
from harness.extensions.yaml_tasks.expressions import CompiledExpression, Expression, compiled, names

from . import graph_bounds as bounds


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


class RandomGraph:
    """A random family of networkx.

    Args:
        entry: the family as the spec has it.
        at: the parameter of the plugin in which it stands.
        size: the parameter that has the number of nodes.

    Attributes:
        name: the generator's name.
        place: where the spec has the first parameter that is an expression.

    Raises:
        PluginError: for an unknown generator, and for parameters that it lacks or does not have.
    """

    def __init__(self, entry: RandomGraphs, at: tuple[str | int, ...] = ("graphs",), size: str = "size") -> None:
        self.name, self._at = entry["random"], at
        self._parameters: dict[str, CompiledExpression | list[Any]] = {}
        parameters = entry.get("parameters", {})
        generator = GENERATORS.get(self.name)
        if generator is None:
            hint = near(self.name, GENERATORS)
            raise PluginError(f"there is no random graph {self.name!r}", hint=hint, at=(*at, "random"))
        known = (*generator.needed, *generator.further)
        for key, value in parameters.items():
            if key not in known:
                hint = near(key, known) + (f" The number of nodes is `{size}`." if key == "n" else "")
                raise PluginError(f"{self.name} has no parameter {key!r} here", hint=hint, at=(*at, "parameters", key))
            self._parameters[key] = value if isinstance(value, list) else compiled(value, ("n",))
        if missing := [key for key in generator.needed if key not in parameters]:
            what = f"{self.name} needs the parameter{'s' * (len(missing) > 1)} {', '.join(missing)}"
            raise PluginError(what, at=(*at, "parameters") if parameters else at)
        texts = (value.text for value in self._parameters.values() if isinstance(value, CompiledExpression))
        self.place: Place | None = next((text.place for text in texts if isinstance(text, Expression)), None)

    def arguments(self, size: int) -> dict[str, Any]:
        """The generator's arguments for so many agents, without the seed."""
        values = names({"n": size})
        found = {
            key: value.value(values) if isinstance(value, CompiledExpression) else value
            for key, value in self._parameters.items()
        }
        return {**found, "n": size} if GENERATORS[self.name].sized else found

    def draw(self, size: int, seed: int, deadline: float) -> tuple[int, list[tuple[int, int]]]:
        """Draw one graph: the number of its nodes, and its edges between nodes from 0. No node is its own neighbor.

        Args:
            size: the number of agents; generators that are not sized have their own.
            seed: of this draw.
            deadline: the CPU time of the thread when drawing must be over (`graph_bounds.deadline`).

        Raises:
            PluginError: if the generator refuses its arguments, or draws too much or too long.
        """
        import networkx as nx

        arguments = self.arguments(size)
        try:
            bounds.check(self.name, arguments)
            graph = getattr(nx, self.name)(**arguments, seed=bounds.Draws(seed, deadline))
        except (
            nx.NetworkXException, ValueError, TypeError, ZeroDivisionError, IndexError, OverflowError,
            bounds.TooMuchError,
        ) as error:  # fmt: skip
            call = ", ".join(f"{key}={value}" for key, value in arguments.items())
            raise PluginError(f"{self.name}({call}) fails: {error}", place=self.place, at=self._at) from None
        order = {node: i for i, node in enumerate(graph)}
        return len(order), [(order[u], order[v]) for u, v in graph.edges if u != v]
