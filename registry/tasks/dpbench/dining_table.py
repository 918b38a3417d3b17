"""DPBench: N philosophers, N forks, local observations (Section 3)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Annotated

from harness.api import Case, Facts, Outcome, Range, plugin
from harness.extensions.games.worlds import SteppedTask

from ._table import Rules, Table


@plugin
class DiningTable(SteppedTask):
    """Dining philosophers: take both forks to eat, and avoid a deadlock in which all hold one.

    There is one case; episodes are its repeats (`repeats:` of the spec). Grades: `meals` of all philosophers, and
    `deadlock`: 1 if the episode ended in one, else 0.

    Attributes:
        philosophers: N, at least 2. With two, both neighbors are the same one.
        rules: how releases and grabs of one timestep are resolved; see `Table.step`.
    """

    philosophers: Annotated[int, Range(ge=2)] = 5
    rules: Rules = "paper"

    grades = ("meals", "deadlock")
    facts = ("eaten",)

    def cases(self, limit: int | None, seed: int) -> Iterable[Case]:
        """Yield the one case: philosophers P0, P1, …, each with its left and its right neighbor."""
        n = self.philosophers
        names = tuple(f"P{i}" for i in range(n))
        neighbors = {name: tuple(dict.fromkeys((names[i - 1], names[(i + 1) % n]))) for i, name in enumerate(names)}
        case = Case(id=f"n{n}", agents=names, topology=neighbors, labels={"philosophers": n})
        return [case][:limit]

    def context(self, case: Case, agent: str) -> Facts:
        """`name`, `number`, `philosophers`, and the neighbors `left` and `right`, which prompts do not mention."""
        i, n = case.agents.index(agent), len(case.agents)
        neighbors = {"left": case.agents[i - 1], "right": case.agents[(i + 1) % n]}
        return {"name": agent, "number": i, "philosophers": n, **neighbors}

    def world(self, case: Case, rng: random.Random) -> Table:
        """All forks on the table."""
        return Table.start(case.agents, self.rules)

    def grade(self, case: Case, outcome: Outcome) -> Mapping[str, float | None]:
        """Return `meals` and `deadlock`; None for an outcome of another protocol."""
        eaten, end = outcome.facts.get("eaten"), outcome.facts.get("end")
        return {
            "meals": None if eaten is None else float(sum(eaten.values())),
            "deadlock": None if end is None else float(end == "deadlock"),
        }
