"""The rules of the dining philosophers (DPBench, Section 3.1), as frozen states. Next: `dining_table.py`, the task."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from harness.api import Action, Facts, Reply
from harness.authoring.worlds import World
from harness.replies import Labelled

GRAB_LEFT, GRAB_RIGHT, RELEASE, WAIT = ACTIONS = ("GRAB_LEFT", "GRAB_RIGHT", "RELEASE", "WAIT")
REPLY = Labelled(ACTIONS, "ACTION", noop=WAIT)
Rules = Literal["paper", "dpbench-0.1", "dpbench-0.2"]


@dataclass(frozen=True, slots=True)
class Table(World):
    """Who holds which fork, who eats, who has eaten how often.

    Fork i lies to the left of philosopher i and to the right of philosopher i − 1 (mod N). A philosopher who does not
    eat is hungry. Forks are conserved whatever happens, but by the rules "dpbench-0.2".

    Attributes:
        agents: the philosophers' names; N ≥ 2.
        forks: for each fork the number of the philosopher who holds it, or None.
        eating: for each philosopher whether it eats. An eater holds both its forks; in its next turn its choice has
            no effect and it gives both back.
        meals: for each philosopher its meals so far; a meal counts in the step in which it begins.
        rules: "paper"; "dpbench-0.1": as the paper's released code resolves releases, see `_in_order`; "dpbench-0.2":
            as release 0.2 does, where an eater's RELEASE lets its forks be taken before it gives them back itself.
        phantoms: (philosopher, fork) of those who hold a fork that lies on the table all the same (release 0.2 only).
    """

    agents: tuple[str, ...]
    forks: tuple[int | None, ...]
    eating: tuple[bool, ...]
    meals: tuple[int, ...]
    rules: Rules = "paper"
    phantoms: frozenset[tuple[int, int]] = frozenset()

    @classmethod
    def laid(cls, agents: tuple[str, ...], rules: Rules = "paper") -> Table:
        """All forks on the table, everybody hungry."""
        n = len(agents)
        return cls(agents, (None,) * n, (False,) * n, (0,) * n, rules)

    def fork(self, i: int, side: str) -> int:
        """The number of philosopher i's fork on a side: GRAB_LEFT or GRAB_RIGHT."""
        return i if side == GRAB_LEFT else (i + 1) % len(self.agents)

    def holds(self, i: int) -> tuple[bool, bool]:
        """Whether philosopher i holds its left and its right fork."""
        left, right = i, (i + 1) % len(self.agents)
        return (
            self.forks[left] == i or (i, left) in self.phantoms,
            self.forks[right] == i or (i, right) in self.phantoms,
        )

    def observation(self, agent: str) -> Facts:
        """Local facts only: `state`, `meals`, `holds_left`, `holds_right`, `left_available`, `right_available`.

        A fork in one's own hand is shown as available, as the released code does.
        """
        i = self.agents.index(agent)
        left, right = self.forks[i], self.forks[(i + 1) % len(self.agents)]
        holds_left, holds_right = self.holds(i)
        return {
            "state": "EATING" if self.eating[i] else "HUNGRY",
            "meals": self.meals[i],
            "holds_left": holds_left,
            "holds_right": holds_right,
            "left_available": left in (None, i),
            "right_available": right in (None, i),
        }

    def reply(self, agent: str) -> Reply:
        """One of the four actions; whoever does nothing waits."""
        return REPLY

    def step(self, actions: Mapping[str, Action], rng: random.Random) -> Table:
        """Everybody named acts at once (in sequential order: one).

        First those who are hungry and release lay down their forks; then grabs, the lower number winning a fork that
        several want; last, those who were eating give both forks back, and whoever has got both eats. The paper does
        not say whether a fork laid down in a step can be taken in it; here it can, unless it was an eater's.

        By the rules "dpbench-0.2" an eater that says RELEASE lays down its forks with the others. They can be taken,
        until the eater, in its turn by number, puts both back on the table; a lower number then still holds one: a
        phantom.
        """
        acting = {i: actions[agent] for i, agent in enumerate(self.agents) if agent in actions}
        choices = {i: action for i, action in acting.items() if not self.eating[i]}
        forks = list(self.forks)
        if self.rules == "dpbench-0.1":
            self._in_order(forks, choices)
        else:
            # In release 0.2 eaters lay down forks too, which others can take before their eating ends.
            for i, action in (acting if self.rules == "dpbench-0.2" else choices).items():
                if action == RELEASE:
                    self._lay_down(forks, i)
            for i, action in choices.items():
                self._grab(forks, i, action)
        eating, meals = list(self.eating), list(self.meals)
        held: list[tuple[int, int]] = []
        for i in acting:
            both = i, (i + 1) % len(forks)
            if self.eating[i]:
                for fork in both:  # by the rules of release 0.2 another one may have it by now, and loses it
                    forks[fork] = None
                eating[i] = False
                continue
            mine = [(i, fork) for fork in both if forks[fork] == i]
            held += mine
            if len(mine) == 2:
                eating[i] = True
                meals[i] += 1
        # Only whoever came before an eater in this loop can hold what that eater has put back since.
        kept = {(i, fork) for i, fork in self.phantoms if i not in acting}
        phantoms = frozenset(kept.union((i, fork) for i, fork in held if forks[fork] != i))
        return replace(self, forks=tuple(forks), eating=tuple(eating), meals=tuple(meals), phantoms=phantoms)

    def _in_order(self, forks: list[int | None], choices: Mapping[int, Action]) -> None:
        """One pass by number: only a higher number can take what a lower one lays down in the same step."""
        for i, action in choices.items():
            if action == RELEASE:
                self._lay_down(forks, i)
            self._grab(forks, i, action)

    def _lay_down(self, forks: list[int | None], i: int) -> None:
        for side in (GRAB_LEFT, GRAB_RIGHT):
            if forks[self.fork(i, side)] == i:
                forks[self.fork(i, side)] = None

    def _grab(self, forks: list[int | None], i: int, action: Action) -> None:
        if action in (GRAB_LEFT, GRAB_RIGHT) and forks[self.fork(i, action)] is None:
            forks[self.fork(i, action)] = i

    @property
    def deadlock(self) -> bool:
        """All are hungry and each holds exactly one fork (Section 3.1)."""
        return not any(self.eating) and all(sum(self.holds(i)) == 1 for i in range(len(self.agents)))

    def freed(self) -> Table:
        """All forks back on the table."""
        return replace(self, forks=(None,) * len(self.agents), phantoms=frozenset())

    def backoff(self, agent: str) -> Action:
        """Whoever is hungry and holds a fork can be made to release it."""
        i = self.agents.index(agent)
        return RELEASE if not self.eating[i] and any(self.holds(i)) else None

    def facts(self) -> Facts:
        """`eaten`: philosopher → meals."""
        return {"eaten": dict(zip(self.agents, self.meals, strict=True))}
