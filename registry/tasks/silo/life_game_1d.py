"""SILO-Bench II-14 (Table 9)."""

from __future__ import annotations

import random
from collections.abc import Sequence

from harness.api import Facts, plugin
from harness.extensions.networks.answers import INTEGERS
from harness.extensions.networks.sharded import Items, ShardedTask


@plugin
class LifeGame1D(ShardedTask):
    """II-14 1D Life Game: the agent's own cells of a cellular automaton after five steps."""

    items: Items = 10

    problem = "II-14"
    level = "II"
    question = (
        "Simulate a one-dimensional game of life on a row of cells distributed across agents. Agent 0 holds cells "
        "[0, k), Agent 1 holds cells [k, 2k), and so on, with k = {items}. In each step all cells change at the "
        "same time: a cell is 1 in the next state if exactly one of its left neighbor, itself and its right neighbor "
        "is 1 in the current state, and 0 otherwise. Outside the row all cells are always 0; the row does not wrap "
        "around. Compute the state of your own cells after {steps} steps. You must coordinate to account for the cells "
        "of neighboring agents."
    )
    form = INTEGERS
    segments = True
    credit = "entries"

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[int]], Facts]:
        """Uniform bits; five steps."""
        return [[rng.randrange(2) for _ in range(self.items)] for _ in range(n)], {"steps": 5}

    def solve(self, shards: Sequence[Sequence[int]], public: Facts) -> list[list[int]]:
        """Synchronous steps between two fixed zeros."""
        cells, k = [cell for shard in shards for cell in shard], len(shards[0])
        for _ in range(public["steps"]):
            row = [0, *cells, 0]
            cells = [int(sum(row[j : j + 3]) == 1) for j in range(len(cells))]
        return [cells[i : i + k] for i in range(0, len(cells), k)]

    def needed_agents(self, agent: int, shards: Sequence[Sequence[int]], public: Facts) -> Sequence[int]:
        """Agents with cells at most `steps` away: those within ⌈steps / k⌉ of this one."""
        reach = -(-public["steps"] // len(shards[agent]))
        return [sum(1 << i for i in range(len(shards)) if abs(i - agent) <= reach)]
