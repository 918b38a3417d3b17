"""(Δ+1)-coloring by random trials, in the manner of Luby's algorithm."""

from __future__ import annotations

import random
from collections.abc import Mapping

from harness.api import Facts

from ._agent import Agent, numbers


class Coloring(Agent):
    """In each phase an agent without a color tries one that no neighbor has taken.

    It takes the color, and announces that, if no neighbor tried or took the same. An agent without a color at the end
    picks one at random.
    """

    deliveries = 2

    def __init__(self, context: Facts, rng: random.Random) -> None:
        super().__init__(context, rng)
        self.groups: int = context["groups"]
        self.color: int | None = None
        self.trial: int | None = None
        self.taken: set[int] = set()

    def receive(self, inbox: Mapping[str, str]) -> None:
        took = set(numbers(inbox, "took").values())
        self.taken |= took
        if self.trial is not None and self.trial not in took | set(numbers(inbox, "try").values()):
            self.color = self.trial
        self.trial = None

    def send(self, opening: bool, rng: random.Random) -> dict[str, str]:
        if self.color is not None:
            return self.to_all("took", self.color)
        if opening:
            self.trial = self._free(rng)
            return self.to_all("try", self.trial)
        return {}

    def answer(self, rng: random.Random) -> str:
        return f"Group {rng.randint(1, self.groups) if self.color is None else self.color}"

    def _free(self, rng: random.Random) -> int:
        if 2 * len(self.taken) < self.groups:  # faster than a list of thousands of groups
            while (color := rng.randint(1, self.groups)) in self.taken:
                pass
            return color
        everything = range(1, self.groups + 1)
        return rng.choice([color for color in everything if color not in self.taken] or everything)
