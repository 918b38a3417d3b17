"""The two global problems: each agent passes on the least it has received, for at least D rounds."""

from __future__ import annotations

import random
from collections.abc import Mapping

from harness.api import Facts

from ._agent import Agent, claims


class Consensus(Agent):
    """Draws 0 or 1, then keeps the minimum of its own and its neighbors' values."""

    def __init__(self, context: Facts, rng: random.Random) -> None:
        super().__init__(context, rng)
        self.value = rng.choice("01")

    def hear(self, inbox: Mapping[str, str]) -> None:
        self.value = min([self.value, *(value for value in claims(inbox, "value").values() if value in ("0", "1"))])

    def say(self, opening: bool, rng: random.Random) -> dict[str, str]:
        return self.to_all("value", self.value)

    def answer(self, rng: random.Random) -> str:
        return self.value


class LeaderElection(Agent):
    """Passes on the first name in lexicographic order that it has heard of; the leader is who bears it."""

    def __init__(self, context: Facts, rng: random.Random) -> None:
        super().__init__(context, rng)
        self.first = self.name

    def hear(self, inbox: Mapping[str, str]) -> None:
        self.first = min([self.first, *(name for name in claims(inbox, "leader").values() if name)])

    def say(self, opening: bool, rng: random.Random) -> dict[str, str]:
        return self.to_all("leader", self.first)

    def answer(self, rng: random.Random) -> str:
        return "Yes" if self.first == self.name else "No"
