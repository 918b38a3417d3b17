"""One agent's side of a distributed algorithm in the LOCAL model, and its short messages."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from harness.api import Facts

MAX_ARGUMENT = 80
"""Longer claims than this are not from an algorithm."""


class Agent(ABC):
    """Hears its neighbors once a round, then says something or answers.

    A message is a word and an argument, such as `try 3`. Anything else that comes in (from a model, from a
    saboteur) is not heard. An algorithm in phases opens one only when all its messages will be delivered.

    Attributes:
        deliveries: rounds that a phase takes, unless the policy is told otherwise.
    """

    deliveries: ClassVar[int] = 1

    def __init__(self, context: Facts, rng: random.Random) -> None:
        self.name: str = context["name"]
        self.neighbors: list[str] = list(context["neighbors"])

    @abstractmethod
    def hear(self, inbox: Mapping[str, str]) -> None:
        """Take in what the neighbors said in the last round."""

    @abstractmethod
    def say(self, opening: bool, rng: random.Random) -> dict[str, str]:
        """Neighbor → message; `opening` says whether a phase begins."""

    @abstractmethod
    def answer(self, rng: random.Random) -> str:
        """The final answer."""

    def to_all(self, word: str, argument: object = "") -> dict[str, str]:
        """The same message to every neighbor."""
        return dict.fromkeys(self.neighbors, f"{word} {argument}".rstrip())


def claims(inbox: Mapping[str, Any], word: str) -> dict[str, str]:
    """Neighbor → argument, of the messages that begin with `word`."""
    heard = {}
    for neighbor, text in inbox.items():
        if isinstance(text, str) and len(text) <= MAX_ARGUMENT:
            said, _, argument = text.partition(" ")
            if said == word:
                heard[neighbor] = argument
    return heard


def numbers(inbox: Mapping[str, Any], word: str) -> dict[str, int]:
    """The claims whose argument is a number of at most 18 digits."""
    heard = claims(inbox, word)
    return {name: int(text) for name, text in heard.items() if text.isascii() and text.isdigit() and len(text) <= 18}
