"""The rules of the dining philosophers (DPBench, Section 3.1), as frozen states. Next: `dining_table.py`, the task."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from harness.api import Action, Facts, Reply
from harness.replies import Labelled
from harness.worlds import World

GRAB_LEFT, GRAB_RIGHT, RELEASE, WAIT = ACTIONS = ("GRAB_LEFT", "GRAB_RIGHT", "RELEASE", "WAIT")
REPLY = Labelled(ACTIONS, "ACTION", idle=WAIT)
Rules = Literal["paper", "dpbench-0.1"]


@dataclass(frozen=True, slots=True)
class Table(World):
    """Who holds which fork, who eats, who has eaten how often.

    Fork i lies to the left of philosopher i and to the right of philosopher i − 1 (mod N). Everybody is hungry who
    does not eat. Nobody can hold a fork twice, so forks are conserved whatever happens.

    Attributes:
        seats: the philosophers' names; N ≥ 2.
        forks: for each fork the number of the philosopher who holds it, or None.
        eating: for each philosopher whether it eats. An eater holds both its forks; in its next turn its choice has
            no effect and it gives both back.
        meals: for each philosopher its meals so far; a meal counts in the step in which it begins.
        rules: "paper", or "dpbench-0.1": as the paper's released code resolves releases, see `_in_order`.
    """

    seats: tuple[str, ...]
    forks: tuple[int | None, ...]
    eating: tuple[bool, ...]
    meals: tuple[int, ...]
    rules: Rules = "paper"

    @classmethod
    def laid(cls, seats: tuple[str, ...], rules: Rules = "paper") -> Table:
        """All forks on the table, everybody hungry."""
        n = len(seats)
        return cls(seats, (None,) * n, (False,) * n, (0,) * n, rules)

    def fork(self, i: int, side: str) -> int:
        """The number of philosopher i's fork on a side: GRAB_LEFT or GRAB_RIGHT."""
        return i if side == GRAB_LEFT else (i + 1) % len(self.seats)

    def holds(self, i: int) -> tuple[bool, bool]:
        """Whether philosopher i holds its left and its right fork."""
        return self.forks[i] == i, self.forks[(i + 1) % len(self.seats)] == i

    def view(self, seat: str) -> Facts:
        """Local facts only: `state`, `meals`, `holds_left`, `holds_right`, `left_available`, `right_available`.

        A fork in one's own hand is shown as available, as the released code does.
        """
        i = self.seats.index(seat)
        left, right = self.forks[i], self.forks[(i + 1) % len(self.seats)]
        return {
            "state": "EATING" if self.eating[i] else "HUNGRY",
            "meals": self.meals[i],
            "holds_left": left == i,
            "holds_right": right == i,
            "left_available": left in (None, i),
            "right_available": right in (None, i),
        }

    def reply(self, seat: str) -> Reply:
        """One of the four actions; whoever does nothing waits."""
        return REPLY

    def step(self, actions: Mapping[str, Action], rng: random.Random) -> Table:
        """Everybody named acts at once (in sequential order: one).

        First those who are hungry and release lay down their forks; then grabs, the lower number winning a fork that
        several want; last, those who were eating give both forks back, and whoever has got both eats. The paper does
        not say whether a fork laid down in a step can be taken in it; here it can, unless it was an eater's.
        """
        acting = {i: actions[seat] for i, seat in enumerate(self.seats) if seat in actions}
        choices = {i: action for i, action in acting.items() if not self.eating[i]}
        forks = list(self.forks)
        if self.rules == "paper":
            for i, action in choices.items():
                if action == RELEASE:
                    self._lay_down(forks, i)
            for i, action in choices.items():
                self._grab(forks, i, action)
        else:
            self._in_order(forks, choices)
        eating, meals = list(self.eating), list(self.meals)
        for i in acting:
            if self.eating[i]:
                self._lay_down(forks, i)
                eating[i] = False
            elif forks[i] == i == forks[(i + 1) % len(forks)]:
                eating[i] = True
                meals[i] += 1
        return replace(self, forks=tuple(forks), eating=tuple(eating), meals=tuple(meals))

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
        return None not in self.forks and not any(self.eating) and all(sum(self.holds(i)) == 1 for i in self._all())

    def freed(self) -> Table:
        """All forks back on the table."""
        return replace(self, forks=(None,) * len(self.seats))

    def backoff(self, seat: str) -> Action:
        """Whoever is hungry and holds a fork can be made to release it."""
        i = self.seats.index(seat)
        return RELEASE if not self.eating[i] and any(self.holds(i)) else None

    def facts(self) -> Facts:
        """`eaten`: philosopher → meals."""
        return {"eaten": dict(zip(self.seats, self.meals, strict=True))}

    def _all(self) -> range:
        return range(len(self.seats))
