"""What the tests of scripted philosophers share: plugins by name, tables of players, and figures of an episode."""

import random
from collections.abc import Callable
from typing import Any

from harness.api import Action, Policy, Turn, derive_seed
from harness.config import project
from harness.extensions.games.worlds import SteppedTask
from harness.runtime.steps import Drive, drive

BUILTIN = project.builtin()
ORDERS = ("simultaneous", "sequential")
SCRIPTED = ("always_left", "resource_ordering", "odd_even", "polite", "chandy_misra")


def load(kind: str, name: str, **parameters: Any) -> Any:
    """A plugin, ready to use."""
    return BUILTIN.load(kind, name)(**parameters)


def player(name: str, **parameters: Any) -> Callable[[str], Policy]:
    """The same policy for every agent."""
    return lambda agent: load("policies", name, **parameters)


def table(n: int, rules: str = "paper") -> SteppedTask:
    plugin: SteppedTask = load("tasks", "dpbench/dining_table", philosophers=n, rules=rules)
    return plugin


def steps(order: str, talk_rounds: int = 0, **parameters: Any) -> Any:
    """The protocol; with talk, over the channel that the order wants."""
    lifetime = "latest" if order == "sequential" else "round"
    channel = load("channels", "neighbors", lifetime=lifetime) if talk_rounds else None
    return load("protocols", "steps", order=order, talk_rounds=talk_rounds, channel=channel, **parameters)


def dine(protocol: Any, task: SteppedTask, players: Callable[[str], Policy], seed: int = 0) -> Drive:
    """One episode with `players(agent)` in every agent, every decision with a chance of its own."""
    case = task.example()
    agents = {agent: players(agent) for agent in case.agents}
    chances = {agent: random.Random(derive_seed(seed, agent)) for agent in case.agents}

    def answer(turn: Turn) -> Action:
        action = agents[turn.agent].choose(turn, chances[turn.agent])
        assert turn.reply.allows(action), (turn, action)
        return action

    return drive(protocol, task, case, answer, seed)


def meals(played: Drive) -> list[int]:
    """Meals of P0, P1, …"""
    return list(played.outcome.facts["eaten"].values())


def throughput(played: Drive) -> float:
    """Meals per timestep (DPBench, equation 2)."""
    return sum(meals(played)) / int(played.outcome.facts["timesteps"])


def fairness(played: Drive) -> float:
    """One minus the normalized Gini coefficient, from the differences of all pairs; 1 if no philosopher has eaten."""
    eaten = meals(played)
    n, total = len(eaten), sum(eaten)
    gini = sum(abs(a - b) for a in eaten for b in eaten) / (2 * n * total) if total else 0.0
    return 1 - gini * n / (n - 1)
