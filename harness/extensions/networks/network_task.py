"""Network tasks: agents that talk to their neighbors only. Families of graphs, agents' names, round budget, scoring.

Subclass `NetworkTask` and define `networks`; cases, an example and the round budget follow. A graph is a
list of edges over the nodes 0 … n-1; the order of the edges fixes the order in which agents see their neighbors.
networkx, numpy and scipy are imported only where a graph needs them.
"""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Literal

from harness.api import Action, Case, Facts, OpenChannel, Outcome, Reply, Task, derive_seed
from harness.api.errors import DataError

from ._names import NAMES

if TYPE_CHECKING:
    import networkx as nx

Family = Literal["small_world", "scale_free", "delaunay", "erdos_renyi", "grid", "ring", "tree", "star", "complete"]
Edges = list[tuple[int, int]]
Adjacency = Mapping[str, tuple[str, ...]]
"""Agent → its neighbors, both in graph order."""


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
    """G(n, p) with p = 2 ln(n)/n, drawn again until it is connected (nearly always at once)."""
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
    """All pairs of nodes are joined: n(n-1)/2 edges."""
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


def adjacency_of(agents: Collection[str], edges: Iterable[tuple[int, int]]) -> Adjacency:
    """Return the neighbors of every agent. Node i is the agent with the i-th name."""
    agents = list(agents)
    lists: dict[str, list[str]] = {name: [] for name in agents}
    for u, v in edges:
        lists[agents[u]].append(agents[v])
        lists[agents[v]].append(agents[u])
    return {name: tuple(neighbors) for name, neighbors in lists.items()}


def draw_names(rng: random.Random, n: int) -> list[str]:
    """Draw `n` different names from `NAMES`. Beyond 200 agents the list continues with James2, Michael2, …"""
    rounds = max(1, -(-n // len(NAMES)))
    pool = [name + (str(k) if k > 1 else "") for k in range(1, rounds + 1) for name in NAMES]
    return rng.sample(pool, n)


def seeded(family: Family, size: int, samples: int, seed: int) -> Iterator[Network]:
    """Yield `samples` graphs of any family and size, different for every seed."""
    for sample in range(samples):
        rng = random.Random(derive_seed("agentsnet", family, size, sample, seed))  # the word is part of all results
        edges = FAMILIES[family](size, rng.randrange(2**31))
        yield Network(f"{family}-{size}-{sample}", family, sample, adjacency_of(draw_names(rng, size), edges))


# ----------------------------------------------------------------------------------------- lengths


def parts(adjacency: Adjacency) -> list[set[str]]:
    """Return the connected components. A link joins two agents whichever of them has it."""
    joined: dict[str, set[str]] = {agent: set() for agent in adjacency}
    for agent, neighbors in adjacency.items():
        for neighbor in neighbors:
            joined[agent].add(neighbor)
            joined.setdefault(neighbor, set()).add(agent)
    found: list[set[str]] = []
    while joined:
        component, waiting = set(), {next(iter(joined))}
        while waiting:
            component.add(agent := waiting.pop())
            waiting |= joined.pop(agent) - component
        found.append(component)
    return found


def diameter(adjacency: Adjacency) -> int:
    """Return the longest shortest path in hops: the rounds until every agent can know about every other.

    Floods the whole network at once with a set of agents as the bits of an integer: D·m·n/64 machine words
    of work and n²/8 bytes, 0.3 s and 25 MB for 10,000 agents of a small world.

    Raises:
        DataError: if the network is not connected.
    """
    known = {agent: 1 << i for i, agent in enumerate(adjacency)}
    all_agents = (1 << len(known)) - 1
    waiting, rounds = [agent for agent in known if known[agent] != all_agents], 0
    while waiting:
        fresh = {}
        for agent in waiting:
            fresh[agent] = known[agent]
            for neighbor in adjacency[agent]:
                fresh[agent] |= known[neighbor]
        if all(known[agent] == now for agent, now in fresh.items()):
            raise DataError(disconnected("the network", parts(adjacency)))
        known |= fresh
        waiting, rounds = [agent for agent in waiting if known[agent] != all_agents], rounds + 1
    return rounds


def disconnected(what: str, pieces: Iterable[Collection[str]]) -> str:
    """Return a message with the sizes of the components of `what`."""
    sizes = sorted(map(len, pieces), reverse=True)
    largest = ", ".join(map(str, sizes[:5])) + (", …" if len(sizes) > 5 else "")
    return f"{what} is not connected: it falls into {len(sizes)} parts of {largest} agents"


# ------------------------------------------------------------------------------------------- tasks


class LocalTask(Task):
    """A task whose agents can talk in rounds, each to its neighbors; where a case has no topology, all to all.

    Class attributes:
        agent_names: the names that agents may have; `parsing: reference` of messages accepts all of them.
    """

    agent_names: ClassVar[tuple[str, ...]] = NAMES

    def rounds(self, case: Case) -> int:
        """Return the round budget: 2D + 1 messages to each neighbor in a network of diameter D.

        So every agent can ask every other and get an answer (AgentsNet, Section 5.1).

        Raises:
            DataError: if the network is not connected.
        """
        return 2 * diameter(links(case)) + 1

    def reply_after_talk(self, case: Case, agent: str) -> Reply:
        """The form of the answer that an agent may reason about, since it has talked before: by default `reply`."""
        return self.reply(case, agent)


class NetworkTask(LocalTask):
    """A task about the network of its agents, who talk to their neighbors only.

    What every task says, as constants of the class or as parameters:
        problem: the problem's name, in a word.
        is_global: whether every agent must be able to know about every other; then networks must be connected.
    """

    problem: str
    is_global: bool = False

    @abstractmethod
    def networks(self, seed: int) -> Iterable[Network]:
        """Yield the networks, always the same ones for a seed. `seeded` yields networks of any family."""

    def case(self, network: Network, seed: int) -> Case:
        """Return the case for a network."""
        adjacency = network.adjacency
        return Case(
            id=network.id,
            agents=tuple(adjacency),
            public={"n": len(adjacency), "max_degree": max(map(len, adjacency.values()))},
            topology=adjacency,
            labels={"graphs": network.family, "size": len(adjacency), "sample": network.sample},
        )

    def cases(self, limit: int | None, seed: int) -> Iterator[Case]:
        """Yield one case per network. Raises `DataError` if a global problem's network is not connected."""
        for network in islice(self.networks(seed), limit):
            pieces = parts(network.adjacency) if self.is_global else []
            if len(pieces) > 1:
                raise DataError(
                    disconnected(f"network {network.id}", pieces),
                    hint=f"{self.problem} needs a connected network: join its parts, or use one of them.",
                )
            yield self.case(network, seed)

    def example(self) -> Case:
        """A triangle with a tail, one of AgentsNet's three networks of four agents."""
        agents = ("Emma", "Alan", "Bob", "Evelyn")
        return self.case(Network("example", "example", 0, adjacency_of(agents, [(0, 1), (0, 2), (0, 3), (1, 3)])), 0)

    def context(self, case: Case, agent: str) -> Facts:
        """The problem's name, the number of agents, the agent's own name and those of its neighbors."""
        neighbors = list(topology_of(case)[agent])
        return {"problem": self.problem, "n": len(case.agents), "name": agent, "neighbors": neighbors}

    def conflicts(self, case: Case, outcome: Outcome) -> Collection[tuple[str, ...]] | None:
        """Return which answers break a rule, for views: agents as (agent,), and pairs of agents.

        None, the default: views know the rules of AgentsNet's problems, and no others.
        """
        return None


def topology_of(case: Case) -> Adjacency:
    """The network of a `NetworkTask`'s case. Raises `ValueError` for a case without one."""
    if case.topology is None:
        raise ValueError(f"case {case.id!r} has no topology")
    return case.topology


def links(case: Case) -> Adjacency:
    """Which agents can write to which: the case's network, or all to all if it has none."""
    if case.topology is not None:
        return case.topology
    return {agent: tuple(other for other in case.agents if other != agent) for agent in case.agents}


@dataclass(frozen=True, slots=True)
class Honest:
    """The scored part of a network: honest agents, the edges between them, and their answers.

    Byzantine agents' answers are "extraneous to the coordination objective" (AgentsNet, Appendix I), so scores are
    those of the network without them.

    Attributes:
        agents: the scored agents.
        edges: each edge between scored agents once.
        answers: scored agent → its answer if the reply's form allows it, else None. AgentsNet's are texts.
    """

    agents: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]
    answers: Mapping[str, Action]

    @property
    def all_valid(self) -> bool:
        """Whether every agent gave an answer that the reply's form allows."""
        return None not in self.answers.values()

    def neighbors(self) -> dict[str, list[str]]:
        """Scored agent → its scored neighbors."""
        lists: dict[str, list[str]] = {agent: [] for agent in self.agents}
        for u, v in self.edges:
            lists[u].append(v)
            lists[v].append(u)
        return lists


def honest(task: Task, case: Case, outcome: Outcome) -> Honest:
    """Return the scored part of an outcome."""
    agents = tuple(agent for agent in case.agents if agent not in case.unscored)
    position = {agent: i for i, agent in enumerate(agents)}
    edges = ((u, v) for u in agents for v in topology_of(case)[u])
    once = tuple((u, v) for u, v in edges if position.get(v, -1) > position[u])
    return Honest(agents, once, {agent: valid(task, case, outcome, agent) for agent in agents})


def valid(task: Task, case: Case, outcome: Outcome, agent: str) -> Action:
    """Return the agent's answer if the reply's form allows it, else None."""
    answer = outcome.answers.get(agent)
    return answer if answer is not None and task.reply(case, agent).allows(answer) else None


class NeighborChannel(OpenChannel):
    """Messages from neighbor to neighbor.

    A move's action maps neighbors to messages. `observation` gives `inbox` (neighbor → its message) and `silent`
    (neighbors
    that sent none), both in neighbor order.
    """
