"""The two global problems: each agent forwards the minimum it has received, for at least D rounds."""

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

    def receive(self, inbox: Mapping[str, str]) -> None:
        self.value = min([self.value, *(value for value in claims(inbox, "value").values() if value in ("0", "1"))])

    def send(self, opening: bool, rng: random.Random) -> dict[str, str]:
        return self.to_all("value", self.value)

    def answer(self, rng: random.Random) -> str:
        return self.value


class LeaderElection(Agent):
    """Forwards the lexicographically first name it has received. The agent with that name is the leader."""

    def __init__(self, context: Facts, rng: random.Random) -> None:
        super().__init__(context, rng)
        self.first = self.name

    def receive(self, inbox: Mapping[str, str]) -> None:
        self.first = min([self.first, *(name for name in claims(inbox, "leader").values() if name)])

    def send(self, opening: bool, rng: random.Random) -> dict[str, str]:
        return self.to_all("leader", self.first)

    def answer(self, rng: random.Random) -> str:
        return "Yes" if self.first == self.name else "No"
