"""Minimal vertex cover: the complement of a maximal independent set (Luby, 1985)."""

from __future__ import annotations

import random
from collections.abc import Mapping

from harness.api import Facts

from ._agent import Agent, claims, numbers


class VertexCover(Agent):
    """In each phase every undecided agent draws a number.

    It joins the independent set, and announces that, if all its undecided neighbors drew smaller numbers. Its neighbors
    stay out. Agents outside the set are coordinators: each edge has one, and each coordinator has a neighbor in the
    set.
    """

    def __init__(self, context: Facts, rng: random.Random) -> None:
        super().__init__(context, rng)
        self.number: int | None = None
        self.independent: bool | None = None

    def receive(self, inbox: Mapping[str, str]) -> None:
        if self.independent is None and claims(inbox, "independent"):
            self.independent = False
        elif self.number is not None and self.number > max(numbers(inbox, "number").values(), default=-1):
            self.independent = True
        self.number = None

    def send(self, opening: bool, rng: random.Random) -> dict[str, str]:
        if self.independent:
            return self.to_all("independent")
        if self.independent is None and opening:
            self.number = rng.randrange(10**12)
            return self.to_all("number", self.number)
        return {}

    def answer(self, rng: random.Random) -> str:
        return "No" if self.independent else "Yes"
