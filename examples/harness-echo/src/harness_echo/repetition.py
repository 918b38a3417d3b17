"""An ability of engines, with the request and the form of reply that need it.

A form with an `ability` gets its answer from the engine itself, not from a text that a model writes. A run whose
engine lacks the ability is refused before it starts.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable
from dataclasses import dataclass

from harness.api import Ability, Action, Completion, Engine, EngineFatalError, Parsed, Reply, Request


@dataclass(frozen=True, slots=True)
class RepetitionRequest(Request):
    """Say this word."""

    word: str = ""

    def send(self, engine: Engine) -> Awaitable[Completion]:
        """Ask an engine. Raises `EngineFatalError` if it repeats nothing."""
        if isinstance(engine, Repeats):
            return engine.repeat(self)
        if engine.any_request:  # such as a recording
            return engine.complete(self)
        raise EngineFatalError(f"the engine of {engine.model} {Repeats.lack}")


class Repeats(Ability):
    """An engine that says words again."""

    need = "has a word repeated"
    lack = "repeats no words"

    @abstractmethod
    async def repeat(self, request: RepetitionRequest) -> Completion:
        """Say the word of the request."""


@dataclass(frozen=True, slots=True)
class Repetition(Reply):
    """The word, said again."""

    word: str

    @property
    def ability(self) -> type[Repeats]:
        return Repeats

    @property
    def options(self) -> tuple[Action, ...]:
        return (self.word,)

    def request_for(self, asked: Request) -> RepetitionRequest:
        return RepetitionRequest(asked.id, asked.thread, asked.sampling, asked.seed, reply=asked.reply, word=self.word)

    def parse(self, text: str) -> Parsed:
        return Parsed(self.word) if text == self.word else Parsed(error=f"that is not {self.word!r}")
