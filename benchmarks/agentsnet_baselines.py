"""Do our classical algorithms do as well as the paper's? AgentsNet, Appendix K, Tables 9 and 10.

Plays `agentsnet/classical` on the 27 and the 81 published graphs, and asks of every cell of the paper's tables
how likely its k successes out of 9 are if our success probability is the true one (exact two-sided binomial
test, Holm's correction over the cells of one table). `docs/agentsnet_baselines.md` says what came of it.

    python benchmarks/agentsnet_baselines.py [--repeats 25] [--seed 0]
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from scipy.stats import binomtest
from tabulate import tabulate

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.api import Case, Move, Outcome, Policy, Protocol, Task, derive_seed
from registry.channels.neighbours import Neighbours
from registry.policies.agentsnet.classical import Classical
from registry.protocols.local_rounds import LocalRounds
from registry.tasks.agentsnet._graphs import PUBLISHED
from registry.tasks.agentsnet._network import NetworkTask
from registry.tasks.agentsnet.coloring import Coloring
from registry.tasks.agentsnet.consensus import Consensus
from registry.tasks.agentsnet.leader_election import LeaderElection
from registry.tasks.agentsnet.matching import Matching
from registry.tasks.agentsnet.vertex_cover import VertexCover

TASKS: dict[str, type[NetworkTask]] = {
    "coloring": Coloring,
    "consensus": Consensus,
    "leader election": LeaderElection,
    "matching": Matching,
    "vertex cover": VertexCover,
}
RUNS = 9  # per cell in the paper: three graphs of each of three families, once

# successes out of 9, from the means that the paper prints
TABLE_9 = {
    "coloring": {4: 6, 8: 6, 16: 7},
    "consensus": {4: 9, 8: 9, 16: 9},
    "leader election": {4: 9, 8: 9, 16: 9},
    "matching": {4: 8, 8: 8, 16: 7},
    "vertex cover": {4: 9, 8: 9, 16: 9},
}
LARGE = tuple(range(20, 101, 10))
TABLE_10 = {task: dict.fromkeys(LARGE, RUNS) for task in TASKS}
TABLE_10["coloring"] = dict(zip(LARGE, (8, 7, 7, 6, 9, 9, 5, 8, 5), strict=True))

ALL_SOLVED = {task: dict.fromkeys((4, 8, 16), RUNS) for task in TASKS}

Table = dict[str, dict[int, int]]


def play(protocol: Protocol, task: Task, case: Case, policies: dict[str, Policy], seed: int) -> Outcome:
    """One episode with a policy in every seat."""
    chances = {seat: random.Random(derive_seed(seed, case.id, seat)) for seat in case.seats}
    game = protocol.play(task, case, case.seats, random.Random(seed))
    moves: list[Move] | None = None
    while True:
        try:
            turns = game.send(moves)  # type: ignore[arg-type]  # None starts a generator
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome
        moves = [Move(t.seat, t.name, policies[t.seat].choose(t, chances[t.seat])) for t in turns]


@dataclass(frozen=True)
class Setting:
    """A title, and how the algorithms are played: `rounds` and the parameters of `agentsnet/classical`."""

    title: str
    rounds: Literal["paper"] | int = "paper"
    deliveries_per_phase: int | None = None
    max_phases: int | None = None

    def policy(self) -> Policy:
        """One agent."""
        return Classical(deliveries_per_phase=self.deliveries_per_phase, max_phases=self.max_phases)


def success(task: str, size: int, setting: Setting, repeats: int, seed: int) -> float:
    """How often the algorithm solves the nine graphs of one size."""
    protocol = LocalRounds(channel=Neighbours(), rounds=setting.rounds)
    solved = []
    for family in PUBLISHED:
        problem = TASKS[task](graphs=family, size=size)
        for case in problem.cases(None, 0):
            for repeat in range(repeats):
                policies = {seat: setting.policy() for seat in case.seats}
                outcome = play(protocol, problem, case, policies, derive_seed(seed, task, repeat))
                solved.append(problem.grade(case, outcome)["solved"] or 0.0)
    return sum(solved) / len(solved)


def holm(chances: list[float]) -> list[float]:
    """Holm's step-down adjustment of p-values."""
    adjusted, highest = [0.0] * len(chances), 0.0
    for rank, i in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        highest = max(highest, min(1.0, (len(chances) - rank) * chances[i]))
        adjusted[i] = highest
    return adjusted


def compare(setting: Setting, table: Table, tasks: Iterable[str], repeats: int, seed: int) -> None:
    """Print one row per cell: the paper's successes, our probability, and how well they go together."""
    begin = time.perf_counter()
    cells = [(task, size, k) for task in tasks for size, k in table[task].items()]
    ours = [success(task, size, setting, repeats, seed) for task, size, _ in cells]
    chances = [float(binomtest(k, RUNS, p).pvalue) for (_, _, k), p in zip(cells, ours, strict=True)]
    rows = [
        [task, size, f"{k}/{RUNS}", f"{p:.3f}", f"{chance:.3f}", f"{fixed:.3f}", "yes" if fixed >= 0.05 else "NO"]
        for (task, size, k), p, chance, fixed in zip(cells, ours, chances, holm(chances), strict=True)
    ]
    head = ["task", "agents", "paper", "ours", "p-value", "Holm", "agrees"]
    print(f"\n{setting.title} ({RUNS * repeats} plays per cell, {time.perf_counter() - begin:.0f} s)\n")
    print(tabulate(rows, head, tablefmt="github", disable_numparse=True), flush=True)


def main() -> None:
    """Print all comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=25, help="plays of each of a cell's nine graphs")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    repeats, seed = options.repeats, options.seed

    compare(Setting("Table 9, 27 graphs"), TABLE_9, TASKS, 4 * repeats, seed)
    quick = Setting("Table 9, phases of 1 delivery", deliveries_per_phase=1)
    compare(quick, TABLE_9, ["coloring"], 4 * repeats, seed)
    slow = Setting("Table 9, phases of 2 deliveries", deliveries_per_phase=2)
    compare(slow, TABLE_9, ["matching", "vertex cover"], 4 * repeats, seed)
    compare(Setting("27 graphs, 40 rounds (expected: all solved)", rounds=40), ALL_SOLVED, TASKS, repeats, seed)

    compare(Setting("Table 10, 81 graphs"), TABLE_10, TASKS, repeats, seed)
    compare(Setting("Table 10, given up after 3 phases", max_phases=3), TABLE_10, ["coloring"], repeats, seed)


if __name__ == "__main__":
    main()
