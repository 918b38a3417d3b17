"""DPBench: N philosophers, N forks, local observations (Section 3)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Annotated

from harness.api import Case, Facts, Outcome, Range, plugin
from harness.authoring.worlds import SteppedTask

from ._table import Rules, Table


@plugin
class DiningTable(SteppedTask):
    """Dining philosophers: take both forks to eat, without everybody holding one and waiting for ever.

    There is one case for a number of philosophers; episodes are its repeats (`repeats:` of the spec). Grades: `meals`
    of the whole table, and `deadlock`: 1 if the episode ended in one.

    Attributes:
        philosophers: N, at least 2. With two, both neighbors are the same one.
        rules: how releases and grabs of one timestep are resolved; see `Table.step`.
    """

    philosophers: Annotated[int, Range(ge=2)] = 5
    rules: Rules = "paper"

    grades = ("meals", "deadlock")
    facts = ("eaten",)

    def cases(self, limit: int | None, seed: int) -> Iterable[Case]:
        """The one table: philosophers P0, P1, …, each with its left neighbor and its right one."""
        n = self.philosophers
        names = tuple(f"P{i}" for i in range(n))
        around = {name: tuple(dict.fromkeys((names[i - 1], names[(i + 1) % n]))) for i, name in enumerate(names)}
        case = Case(id=f"n{n}", agents=names, topology=around, labels={"philosophers": n})
        return [case][:limit]

    def context(self, case: Case, agent: str) -> Facts:
        """`name`, its `number`, `philosophers`, and who sits `left` and `right`, which prompts do not tell."""
        i, n = case.agents.index(agent), len(case.agents)
        around = {"left": case.agents[i - 1], "right": case.agents[(i + 1) % n]}
        return {"name": agent, "number": i, "philosophers": n, **around}

    def world(self, case: Case, rng: random.Random) -> Table:
        """All forks on the table."""
        return Table.laid(case.agents, self.rules)

    def grade(self, case: Case, outcome: Outcome) -> Mapping[str, float | None]:
        """`meals` and `deadlock`; None for an outcome that is not of a stepped game."""
        eaten, end = outcome.facts.get("eaten"), outcome.facts.get("end")
        return {
            "meals": None if eaten is None else float(sum(eaten.values())),
            "deadlock": None if end is None else float(end == "deadlock"),
        }
