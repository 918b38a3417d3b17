"""One agent's side of a distributed algorithm in the LOCAL model, and its short messages."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from harness.api import Facts

MAX_ARGUMENT = 80
"""Longest message, in characters, that can come from an algorithm."""


class Agent(ABC):
    """Receives its neighbors' messages once a round, then sends messages or answers.

    A message is a word and an argument, such as `try 3`. Any other message (from a model, from a saboteur) is ignored.
    An algorithm in phases opens a phase only if all its messages will be delivered.

    Attributes:
        deliveries: rounds that a phase takes by default.
    """

    deliveries: ClassVar[int] = 1

    def __init__(self, context: Facts, rng: random.Random) -> None:
        self.name: str = context["name"]
        self.neighbors: list[str] = list(context["neighbors"])

    @abstractmethod
    def receive(self, inbox: Mapping[str, str]) -> None:
        """Process the neighbors' messages of the last round."""

    @abstractmethod
    def send(self, opening: bool, rng: random.Random) -> dict[str, str]:
        """Return neighbor → message; `opening` says whether a phase starts."""

    @abstractmethod
    def answer(self, rng: random.Random) -> str:
        """Return the final answer."""

    def to_all(self, word: str, argument: object = "") -> dict[str, str]:
        """Return the same message for every neighbor."""
        return dict.fromkeys(self.neighbors, f"{word} {argument}".rstrip())


def claims(inbox: Mapping[str, Any], word: str) -> dict[str, str]:
    """Return neighbor → argument for the messages that begin with `word`."""
    arguments = {}
    for neighbor, text in inbox.items():
        if isinstance(text, str) and len(text) <= MAX_ARGUMENT:
            first_word, _, argument = text.partition(" ")
            if first_word == word:
                arguments[neighbor] = argument
    return arguments


def numbers(inbox: Mapping[str, Any], word: str) -> dict[str, int]:
    """Return the claims whose argument is a number of at most 18 digits."""
    arguments = claims(inbox, word)
    return {
        name: int(text) for name, text in arguments.items() if text.isascii() and text.isdigit() and len(text) <= 18
    }
