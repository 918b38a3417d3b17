"""Minimal vertex cover: the complement of a maximal independent set (Luby, 1985)."""

from __future__ import annotations

import random
from collections.abc import Mapping

from harness.api import Facts

from ._agent import Agent, claims, numbers


class VertexCover(Agent):
    """Each phase, every undecided agent draws a number; it joins the independent set if all its undecided
    neighbors drew smaller ones, and says so; their neighbors stay out. An agent outside the set is a
    coordinator: each edge has one, and each coordinator has a neighbor in the set."""

    def __init__(self, context: Facts, rng: random.Random) -> None:
        super().__init__(context, rng)
        self.number: int | None = None
        self.independent: bool | None = None

    def hear(self, inbox: Mapping[str, str]) -> None:
        if self.independent is None and claims(inbox, "independent"):
            self.independent = False
        elif self.number is not None and self.number > max(numbers(inbox, "number").values(), default=-1):
            self.independent = True
        self.number = None

    def say(self, opening: bool, rng: random.Random) -> dict[str, str]:
        if self.independent:
            return self.to_all("independent")
        if self.independent is None and opening:
            self.number = rng.randrange(10**12)
            return self.to_all("number", self.number)
        return {}

    def answer(self, rng: random.Random) -> str:
        return "No" if self.independent else "Yes"
