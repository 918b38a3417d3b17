"""What the five tasks of AgentsNet share: networks as cases, the round budget, scoring on honest agents."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, ClassVar, Literal

from harness.api import Case, Facts, Outcome, Range, Task
from harness.errors import DataError, PluginError
from harness.replies import Choice

from . import _dataset, _edges
from ._graphs import Adjacency, Family, Network, diameter, disconnected, named, parts, published, seeded

FINAL_ANSWER = "### Final Answer ###"
"""What announces the final answer (Section 4, "Final Response")."""


@dataclass(kw_only=True)
class NetworkTask(Task):
    """One problem on many networks.

    Attributes:
        graphs: the family of networks. AgentsNet has small_world, scale_free and delaunay.
        size: how many agents.
        samples: how many networks.
        source: "published" are the paper's own (27 of 4, 8 and 16 agents; 81 of 20 to 100), the same for every
            seed; "seeded" are new ones of any family and size; "dataset" are read from the data set;
            "edges" is the one network in the file `edges`, whatever `graphs`, `size` and `samples` say.
        edges: an edge list, one pair of agents a line.
        header: whether the first line of `edges` names the columns; without it that is looked for, and what may be a
            header and an edge is refused.
        scoring: "paper" follows Appendix B, see each task's grades; "reference" is AgentsNet's own code: `solved` is a
            `score` of 1, one invalid answer makes a coloring 0, a set that covers not all is its coverage, and a vertex
            cover without coordinators has no number (its runs broke off and seem to have been dropped).
        dataset_path: where `datasets` finds the data set.
        data_dir: a folder with the data set's files, to read offline.
    """

    graphs: Family = "small_world"
    size: Annotated[int, Range(ge=2)] = 8
    samples: Annotated[int, Range(ge=1)] = 3
    source: Literal["published", "seeded", "dataset", "edges"] = "published"
    edges: str | None = None
    header: bool | None = None
    scoring: Literal["paper", "reference"] = "paper"
    dataset_path: str = "disco-eth/AgentsNet"
    data_dir: str | None = None

    gives: ClassVar[frozenset[str]] = frozenset({"topology", "rounds"})
    grades: ClassVar[tuple[str, ...]] = ("solved", "score")
    problem: ClassVar[str]
    is_global: ClassVar[bool] = False
    """Whether everybody must be able to hear of everybody (Section 5.1)."""

    def cases(self, limit: int | None, seed: int) -> Iterator[Case]:
        """One case per network.

        Raises:
            PluginError: if there are no such published networks, or `edges` is missing.
            DataError: if a file or the data set cannot be read, or a network is not connected and the problem
                needs it to be.
        """
        for network in islice(self._networks(seed), limit):
            pieces = parts(network.adjacency) if self.is_global else []
            if len(pieces) > 1:
                raise DataError(
                    disconnected(f"network {network.id}", pieces),
                    hint=f"{self.problem} needs everybody to hear of everybody: join the parts, or give one of them.",
                )
            yield case_of(network)

    def _networks(self, seed: int) -> Iterable[Network]:
        if self.source == "published":
            return published(self.graphs, self.size, self.samples)
        if self.source == "seeded":
            return seeded(self.graphs, self.size, self.samples, seed)
        if self.source == "dataset":
            return _dataset.networks(self.dataset_path, self.data_dir, self.graphs, self.size, self.samples)
        return [self._own(seed)]

    def _own(self, seed: int) -> Network:
        if self.edges is None:
            raise PluginError("source: edges needs a file", hint="Give the path of an edge list as `edges: my.csv`.")
        return _edges.read(self.edges, seed, self.header)

    def inputs(self, seed: int) -> tuple[str, ...]:
        """The network that was read from `edges`."""
        return (f"{self.edges}: {_edges.summary(self._own(seed))}",) if self.source == "edges" else ()

    def example(self) -> Case:
        """A triangle with a tail, one of the paper's three networks of four agents."""
        return case_of(
            Network("example", "example", 0, named(("Emma", "Alan", "Bob", "Evelyn"), [(0, 1), (0, 2), (0, 3), (1, 3)]))
        )

    def rounds(self, case: Case) -> int:
        """The paper's round budget (Section 5.1, and Section 5.2 for more than 16 agents).

        2D + 1 messages for a network of diameter D, so that everybody can ask everybody and hear back; for the
        local problems 4, 5 and 6 for up to 4, 8 and 16 agents.

        Raises:
            DataError: if the network is not connected, so that it has no diameter.
        """
        n = len(case.seats)
        if n > 16 or self.is_global:
            return 2 * diameter(topology_of(case)) + 1
        return 4 if n <= 4 else 5 if n <= 8 else 6

    def brief(self, case: Case, seat: str) -> Facts:
        """The problem's name, the number of agents, the agent's own name and those of its neighbors."""
        neighbors = list(topology_of(case)[seat])
        return {"problem": self.problem, "n": len(case.seats), "name": seat, "neighbors": neighbors}

    @abstractmethod
    def reply(self, case: Case, seat: str) -> Choice:
        """The final answers among which the seat chooses."""


def case_of(network: Network) -> Case:
    """The case that plays on `network`."""
    adjacency = network.adjacency
    degree = max(map(len, adjacency.values()))
    return Case(
        id=network.id,
        seats=tuple(adjacency),
        public={"n": len(adjacency), "max_degree": degree},
        topology=adjacency,
        labels={"graphs": network.family, "size": len(adjacency), "sample": network.sample},
    )


def topology_of(case: Case) -> Adjacency:
    """The case's network."""
    assert case.topology is not None  # every case here is made by `case_of`
    return case.topology


@dataclass(frozen=True, slots=True)
class Honest:
    """The part of a played network that counts: honest agents, the edges between them, and their answers.

    Byzantine agents' answers are "extraneous to the coordination objective" (Appendix I), so scores are those
    of the network without them.

    Attributes:
        agents: the scored seats.
        edges: each edge between scored seats once.
        answers: scored seat → its answer if that is one of the options, else None.
    """

    agents: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]
    answers: Mapping[str, str | None]

    @property
    def all_valid(self) -> bool:
        """Whether every agent gave one of the options."""
        return None not in self.answers.values()

    def neighbors(self) -> dict[str, list[str]]:
        """Scored seat → its scored neighbors."""
        lists: dict[str, list[str]] = {agent: [] for agent in self.agents}
        for u, v in self.edges:
            lists[u].append(v)
            lists[v].append(u)
        return lists


def honest(task: NetworkTask, case: Case, outcome: Outcome) -> Honest:
    """What counts of an outcome."""
    agents = tuple(seat for seat in case.seats if seat not in case.unscored)
    position = {agent: i for i, agent in enumerate(agents)}
    edges = ((u, v) for u in agents for v in topology_of(case)[u])
    once = tuple((u, v) for u, v in edges if position.get(v, -1) > position[u])
    return Honest(agents, once, {agent: valid(task.reply(case, agent), outcome.answers.get(agent)) for agent in agents})


def valid(reply: Choice, answer: Any) -> str | None:
    """`answer` if it is one of the options, else None."""
    return answer if isinstance(answer, str) and answer in reply.options else None
