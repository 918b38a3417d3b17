"""SILO-Bench III-29 (Table 9)."""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence
from itertools import chain

from harness.api import Facts, plugin
from harness.extensions.networks.answers import TABLE, AnswerForm
from harness.extensions.networks.sharded import Items, ShardedTask


@plugin
class LoadBalance(ShardedTask):
    """III-29 Load Balance: variance, largest and smallest load after tasks are reassigned, longest first.

    N·k tasks. Those with a number divisible by 10 are heavy, 50 to 100 long, and all with agent 0. The others are 1 to
    10 long and with the other agents in turn. A single agent has all.
    """

    items: Items = 20

    problem = "III-29"
    level = "III"
    question = (
        "Redistribute tasks among the {n} agents to balance their load. Each agent currently holds some tasks, each as "
        '{{"id": number, "dur": duration}}; they may be unevenly spread. All {tasks} tasks of all agents are assigned '
        "anew by the longest-processing-time rule: in order of descending duration (equal durations: lower id first) "
        "every task goes to the agent with the smallest load so far (equal loads: lowest agent number), all loads "
        "being 0 at first. The load of an agent is the sum of the durations assigned to it. The answer gives the "
        "population variance (the mean squared deviation from the mean, divided by {n}) of the {n} final loads, the "
        "largest load and the smallest load."
    )
    form = AnswerForm('a JSON object with the three keys "variance", "max_load" and "min_load"', TABLE.schema)
    digits = 2
    credit = "entries"

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[dict[str, int]]], Facts]:
        """Uniform durations; heavy tasks to agent 0."""
        size = n * self.items
        tasks = [{"id": i, "dur": rng.randint(1, 10) if i % 10 else rng.randint(50, 100)} for i in range(size)]
        if n == 1:
            return [tasks], {"tasks": size, "workers": n}
        light = [task for task in tasks if task["id"] % 10]
        return [tasks[::10], *(light[i :: n - 1] for i in range(n - 1))], {"tasks": size, "workers": n}

    def solve(self, shards: Sequence[Sequence[dict[str, int]]], public: Facts) -> dict[str, float]:
        """Assign tasks with a heap of loads; compute the variance from integers."""
        n = public["workers"]
        loads = [(0, agent) for agent in range(n)]
        for minus, _ in sorted((-task["dur"], task["id"]) for task in chain.from_iterable(shards)):
            load, agent = loads[0]
            heapq.heapreplace(loads, (load - minus, agent))
        final = [load for load, _ in loads]
        variance = (n * sum(load**2 for load in final) - sum(final) ** 2) / n**2
        return {"variance": variance, "max_load": max(final), "min_load": min(final)}
