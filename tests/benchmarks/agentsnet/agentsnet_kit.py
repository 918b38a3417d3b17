"""What the AgentsNet tests share: plugins by name, small networks, and episodes with policies in the agents."""

import random
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

from harness.api import Action, Case, Outcome, Policy, Protocol, Task, Turn, derive_seed
from harness.config import project
from harness.runtime.steps import Drive, drive

BUILTIN = project.builtin()
PROBLEMS = ("coloring", "consensus", "leader_election", "matching", "vertex_cover")
NAMES = ("Emma", "Alan", "Bob", "Evelyn", "Mary", "Joseph", "Jose", "Ann")


def load(kind: str, name: str, **parameters: Any) -> Any:
    """A plugin, ready to use."""
    return BUILTIN.load(kind, name)(**parameters)


def task(problem: str, **parameters: Any) -> Any:
    return load("tasks", f"agentsnet/{problem}", **parameters)


def local_rounds(**parameters: Any) -> Protocol:
    plugin: Protocol = load("protocols", "local_rounds", channel=load("channels", "neighbors"), **parameters)
    return plugin


def case_of(topology: Mapping[str, tuple[str, ...]], unscored: frozenset[str] = frozenset()) -> Case:
    """A case on `topology`, made as the tasks make theirs."""
    public = {"n": len(topology), "max_degree": max(map(len, topology.values()))}
    return Case("x", tuple(topology), public=public, topology=topology, unscored=unscored)


def network(edges: set[tuple[int, int]], n: int) -> dict[str, tuple[str, ...]]:
    """Agent → neighbors, for edges between the positions 0 … n-1."""
    return {
        NAMES[i]: tuple(NAMES[j] for j in range(n) if (i, j) in edges or (j, i) in edges) for i in range(n)
    }  # fmt: skip


@st.composite
def networks(draw: st.DrawFn, low: int = 2, high: int = 6, connected: bool = False) -> dict[str, tuple[str, ...]]:
    n = draw(st.integers(low, high))
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    edges = set(draw(st.lists(st.sampled_from(pairs), unique=True)))
    if connected:
        edges |= {(draw(st.integers(0, j - 1)), j) for j in range(1, n)}
    return network(edges, n)


def play(protocol: Protocol, problem: Task, case: Case, policies: Callable[[str], Policy], seed: int = 0) -> Drive:
    """One episode with `policies(agent)` in every agent, every turn with a chance of its own."""
    agents = {agent: policies(agent) for agent in case.agents}

    def answer(turn: Turn) -> Action:
        chance = random.Random(derive_seed(seed, turn.agent, turn.observation["round"]))
        return agents[turn.agent].choose(turn, chance)

    return drive(protocol, problem, case, answer)


def grade(problem: Task, case: Case, answers: Mapping[str, Any]) -> dict[str, float | None]:
    return dict(problem.grade(case, Outcome(answers)))
