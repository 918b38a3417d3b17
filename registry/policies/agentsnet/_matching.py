"""Maximal matching by mutual random proposals, in the manner of Luby's algorithm."""

from __future__ import annotations

import random
from collections.abc import Mapping

from harness.api import Facts

from ._agent import Agent, claims


class Matching(Agent):
    """In each phase every single agent proposes to a random neighbor that may still be single.

    Two agents that propose to each other are a pair, and announce from then on that they are taken. The others answer
    None.
    """

    def __init__(self, context: Facts, rng: random.Random) -> None:
        super().__init__(context, rng)
        self.partner: str | None = None
        self.proposal: str | None = None
        self.single = list(self.neighbors)

    def receive(self, inbox: Mapping[str, str]) -> None:
        if self.proposal is not None and self.proposal in claims(inbox, "pair"):
            self.partner = self.proposal
        self.proposal = None
        taken = claims(inbox, "taken")
        self.single = [name for name in self.single if name not in taken]

    def send(self, opening: bool, rng: random.Random) -> dict[str, str]:
        if self.partner is not None:
            return self.to_all("taken")
        if opening and self.single:
            self.proposal = rng.choice(self.single)
            return {self.proposal: "pair"}
        return {}

    def answer(self, rng: random.Random) -> str:
        return self.partner or "None"
