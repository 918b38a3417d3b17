"""The rules of the dining philosophers (DPBench, Section 3.1), as frozen states. The task is `dining_table.py`."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from harness.api import Action, Facts, Reply
from harness.extensions.games.worlds import World
from harness.replies import Labelled

GRAB_LEFT, GRAB_RIGHT, RELEASE, WAIT = ACTIONS = ("GRAB_LEFT", "GRAB_RIGHT", "RELEASE", "WAIT")
REPLY = Labelled(ACTIONS, "ACTION", noop=WAIT)
Rules = Literal["paper", "dpbench-0.1", "dpbench-0.2"]


@dataclass(frozen=True, slots=True)
class Table(World):
    """The state of the game: holders of forks, eating philosophers, and meals so far.

    Fork i is to the left of philosopher i and to the right of philosopher i − 1 (mod N). A philosopher that does not
    eat is hungry. Forks are conserved, except under the rules "dpbench-0.2".

    Attributes:
        agents: the philosophers' names; N ≥ 2.
        forks: for each fork the number of the philosopher that holds it, or None.
        eating: for each philosopher whether it eats. An eating philosopher holds both its forks. In its next turn it
            puts both back; its action has no effect.
        meals: for each philosopher its meals so far. A meal counts in the step in which it starts.
        rules: "paper"; "dpbench-0.1": releases as in the paper's released code, see `_in_order`; "dpbench-0.2": as in
            release 0.2, where a RELEASE of an eating philosopher frees its forks before it puts them back.
        phantoms: (philosopher, fork) pairs of forks that are held and on the table at once (release 0.2 only).
    """

    agents: tuple[str, ...]
    forks: tuple[int | None, ...]
    eating: tuple[bool, ...]
    meals: tuple[int, ...]
    rules: Rules = "paper"
    phantoms: frozenset[tuple[int, int]] = frozenset()

    @classmethod
    def start(cls, agents: tuple[str, ...], rules: Rules = "paper") -> Table:
        """Return the first state: all forks are on the table, and all philosophers hungry."""
        n = len(agents)
        return cls(agents, (None,) * n, (False,) * n, (0,) * n, rules)

    def fork(self, i: int, side: str) -> int:
        """Return the number of philosopher i's fork on a side: GRAB_LEFT or GRAB_RIGHT."""
        return i if side == GRAB_LEFT else (i + 1) % len(self.agents)

    def holds(self, i: int) -> tuple[bool, bool]:
        """Return whether philosopher i holds its left and its right fork."""
        left, right = i, (i + 1) % len(self.agents)
        return (
            self.forks[left] == i or (i, left) in self.phantoms,
            self.forks[right] == i or (i, right) in self.phantoms,
        )

    def observation(self, agent: str) -> Facts:
        """Local facts only: `state`, `meals`, `holds_left`, `holds_right`, `left_available`, `right_available`.

        A fork that the philosopher holds itself counts as available, as in the released code.
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
        """One of the four actions; the no-op is WAIT."""
        return REPLY

    def step(self, actions: Mapping[str, Action], rng: random.Random) -> Table:
        """Return the state after these agents act at once (in sequential order there is one).

        First, hungry philosophers that release put down their forks. Then grabs: the lower number wins a contested
        fork. Last, philosophers that were eating put both forks back, and those with both forks eat. The paper does not
        say whether a fork that was put down can be taken in the same step. Here it can, unless its holder was eating.

        Under the rules "dpbench-0.2" an eating philosopher that releases puts down its forks with the others. They can
        be taken until it puts both back, in order of numbers. A lower number then still holds one: a phantom.
        """
        acting = {i: actions[agent] for i, agent in enumerate(self.agents) if agent in actions}
        choices = {i: action for i, action in acting.items() if not self.eating[i]}
        forks = list(self.forks)
        if self.rules == "dpbench-0.1":
            self._in_order(forks, choices)
        else:
            # In release 0.2 eating philosophers release forks too, and others can take them before the meal ends.
            for i, action in (acting if self.rules == "dpbench-0.2" else choices).items():
                if action == RELEASE:
                    self._lay_down(forks, i)
            for i, action in choices.items():
                self._grab(forks, i, action)
        eating, meals = list(self.eating), list(self.meals)
        grabbed: list[tuple[int, int]] = []
        for i in acting:
            both = i, (i + 1) % len(forks)
            if self.eating[i]:
                for fork in both:  # under the rules of release 0.2 another one may hold it by now, and loses it
                    forks[fork] = None
                eating[i] = False
                continue
            own_forks = [(i, fork) for fork in both if forks[fork] == i]
            grabbed += own_forks
            if len(own_forks) == 2:
                eating[i] = True
                meals[i] += 1
        # Phantoms: forks grabbed in this loop before an eating philosopher put them back.
        remaining = {(i, fork) for i, fork in self.phantoms if i not in acting}
        phantoms = frozenset(remaining.union((i, fork) for i, fork in grabbed if forks[fork] != i))
        return replace(self, forks=tuple(forks), eating=tuple(eating), meals=tuple(meals), phantoms=phantoms)

    def _in_order(self, forks: list[int | None], choices: Mapping[int, Action]) -> None:
        """Act in order of numbers: only a higher number can take a fork that a lower one puts down in this step."""
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

    def break_deadlock(self) -> Table:
        """Return the state with all forks back on the table."""
        return replace(self, forks=(None,) * len(self.agents), phantoms=frozenset())

    def backoff(self, agent: str) -> Action:
        """RELEASE for a hungry philosopher with a fork, else None."""
        i = self.agents.index(agent)
        return RELEASE if not self.eating[i] and any(self.holds(i)) else None

    def facts(self) -> Facts:
        """Return `eaten`: philosopher → meals."""
        return {"eaten": dict(zip(self.agents, self.meals, strict=True))}
