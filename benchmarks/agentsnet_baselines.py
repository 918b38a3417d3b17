"""Do our classical algorithms do as well as the paper's? AgentsNet, Appendix K, Tables 9 and 10.

Plays `agentsnet/classical` on the 27 and the 81 published graphs, and asks of every cell of the paper's tables
how likely its k successes out of 9 are if our success probability is the true one (exact two-sided binomial
test, Holm's correction over the cells of one table). `docs/benchmarks/agentsnet.md` says what came of it.

    python benchmarks/agentsnet_baselines.py [--repeats 23] [--seed 0]
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from scipy.stats import binomtest
from tabulate import tabulate

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.api import Case, Protocol, Task, derive_seed
from harness.config import project
from harness.runtime.steps import drive
from harness.tables.stats import holm

BUILTIN = project.builtin()
TASKS = ("coloring", "consensus", "leader_election", "matching", "vertex_cover")
FAMILIES = ("small_world", "scale_free", "delaunay")
RUNS = 9  # per cell in the paper: three graphs of each of three families, once

# successes out of 9, from the means that the paper prints
TABLE_9 = {
    "coloring": {4: 6, 8: 6, 16: 7},
    "consensus": {4: 9, 8: 9, 16: 9},
    "leader_election": {4: 9, 8: 9, 16: 9},
    "matching": {4: 8, 8: 8, 16: 7},
    "vertex_cover": {4: 9, 8: 9, 16: 9},
}
LARGE = tuple(range(20, 101, 10))
TABLE_10 = {task: dict.fromkeys(LARGE, RUNS) for task in TASKS}
TABLE_10["coloring"] = dict(zip(LARGE, (8, 7, 7, 6, 9, 9, 5, 8, 5), strict=True))

ALL_SOLVED = {task: dict.fromkeys((4, 8, 16), RUNS) for task in TASKS}

Table = dict[str, dict[int, int]]


@dataclass(frozen=True)
class Setting:
    """A title, how many rounds there are, and the parameters of `agentsnet/classical`."""

    title: str
    rounds: Literal["paper"] | int = "paper"
    parameters: dict[str, int] = field(default_factory=dict)


def success(task: str, size: int, setting: Setting, repeats: int, seed: int) -> float:
    """How often the algorithm solves the nine graphs of one size."""
    channel = BUILTIN.load("channels", "neighbors")()
    protocol = BUILTIN.load("protocols", "local_rounds")(channel=channel, rounds=setting.rounds)
    problems = [BUILTIN.load("tasks", f"agentsnet/{task}")(graphs=family, size=size) for family in FAMILIES]
    solved = [
        solves(problem, protocol, case, setting, derive_seed(seed, task, case.id, repeat))
        for problem in problems
        for case in problem.cases(None, 0)
        for repeat in range(repeats)
    ]
    return sum(solved) / len(solved)


def solves(problem: Task, protocol: Protocol, case: Case, setting: Setting, seed: int) -> bool:
    """Whether one run of the algorithm solves one graph."""
    classical = BUILTIN.load("policies", "agentsnet/classical")
    agents = {agent: classical(**setting.parameters) for agent in case.agents}
    chances = {agent: random.Random(derive_seed(seed, agent)) for agent in case.agents}
    played = drive(protocol, problem, case, lambda turn: agents[turn.agent].choose(turn, chances[turn.agent]))
    return problem.grade(case, played.outcome)["solved"] == 1


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
    parser.add_argument("--repeats", type=int, default=23, help="plays of each of a cell's nine graphs")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    repeats, seed = options.repeats, options.seed

    compare(Setting("Table 9, 27 graphs"), TABLE_9, TASKS, 4 * repeats, seed)
    quick = Setting("Table 9, phases of 1 delivery", parameters={"deliveries_per_phase": 1})
    compare(quick, TABLE_9, ["coloring"], 4 * repeats, seed)
    slow = Setting("Table 9, phases of 2 deliveries", parameters={"deliveries_per_phase": 2})
    compare(slow, TABLE_9, ["matching", "vertex_cover"], 4 * repeats, seed)
    compare(Setting("27 graphs, 40 rounds (expected: all solved)", rounds=40), ALL_SOLVED, TASKS, repeats, seed)

    compare(Setting("Table 10, 81 graphs"), TABLE_10, TASKS, repeats, seed)
    context = Setting("Table 10, given up after 3 phases", parameters={"max_phases": 3})
    compare(context, TABLE_10, ["coloring"], repeats, seed)


if __name__ == "__main__":
    main()
