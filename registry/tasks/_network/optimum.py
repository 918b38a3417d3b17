"""What a named algorithm of networkx finds on a network, to compare answers with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, Required, TypedDict

from harness.extensions.networks import Adjacency
from harness.extensions.yaml_tasks.expressions import Expression

if TYPE_CHECKING:
    import networkx as nx

Algorithm = Literal[
    "dominating_set", "greedy_color", "kernighan_lin_bisection", "max_weight_matching", "maximum_independent_set",
    "min_edge_dominating_set", "min_maximal_matching", "min_weighted_dominating_set", "min_weighted_vertex_cover",
    "minimum_spanning_tree", "node_clique",
]  # fmt: skip


class Optimum(TypedDict):
    """What an algorithm of networkx finds, and the number by which answers are compared with it."""

    algorithm: Required[
        Annotated[Algorithm, "max_weight_matching is exact, the others are good approximations where that is hard"]
    ]
    best: Required[Annotated[Expression, "the number of what it finds: an expression over `solution`"]]
    value: Required[Annotated[Expression, "the same number of the answers"]]


def solve(algorithm: Algorithm, adjacency: Adjacency) -> Any:
    """Return what an algorithm finds, as agents: a list, a list of pairs, or agent → color or side, from 0."""
    import networkx as nx

    agents = list(adjacency)
    # Whole numbers, since sets of texts have another order in every process, by which approximations choose.
    order = {agent: i for i, agent in enumerate(agents)}
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(len(agents)))
    graph.add_edges_from(
        (order[u], order[v]) for u, neighbors in adjacency.items() for v in neighbors if order[u] < order[v]
    )
    result = _ALGORITHMS[algorithm](graph)
    if isinstance(result, dict):
        return {agents[node]: value for node, value in sorted(result.items())}
    if all(isinstance(one, int) for one in result):
        return [agents[node] for node in sorted(result)]
    return sorted([agents[node] for node in sorted(pair)] for pair in result)


def _approximation(name: str) -> Callable[[nx.Graph[int]], Any]:
    def run(graph: nx.Graph[int]) -> Any:
        from networkx.algorithms import approximation

        return getattr(approximation, name)(graph)

    return run


def _max_weight_matching(graph: nx.Graph[int]) -> Any:
    import networkx as nx

    return nx.max_weight_matching(graph, maxcardinality=True)


def _greedy_color(graph: nx.Graph[int]) -> Any:
    import networkx as nx

    return nx.greedy_color(graph, "DSATUR")


def _dominating_set(graph: nx.Graph[int]) -> Any:
    import networkx as nx

    return nx.dominating_set(graph, start_with=0)


def _bisection(graph: nx.Graph[int]) -> Any:
    from networkx.algorithms.community import kernighan_lin_bisection

    sides = kernighan_lin_bisection(graph, seed=0)
    return {node: number for number, side in enumerate(sides) for node in side}


def _spanning_tree(graph: nx.Graph[int]) -> Any:
    import networkx as nx

    return list(nx.minimum_spanning_tree(graph).edges)


_ALGORITHMS: dict[Algorithm, Callable[[nx.Graph[int]], Any]] = {
    "dominating_set": _dominating_set,
    "greedy_color": _greedy_color,
    "kernighan_lin_bisection": _bisection,
    "max_weight_matching": _max_weight_matching,
    "maximum_independent_set": _approximation("maximum_independent_set"),
    "min_edge_dominating_set": _approximation("min_edge_dominating_set"),
    "min_maximal_matching": _approximation("min_maximal_matching"),
    "min_weighted_dominating_set": _approximation("min_weighted_dominating_set"),
    "min_weighted_vertex_cover": _approximation("min_weighted_vertex_cover"),
    "minimum_spanning_tree": _spanning_tree,
    "node_clique": _approximation("max_clique"),
}
