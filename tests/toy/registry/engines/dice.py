"""Answers by chance, from the request's own seed; counts and logs what it is asked."""

from __future__ import annotations

import asyncio
from pathlib import Path

from harness.api import Completion, Engine, Request, plugin
from harness.api.errors import ContextLengthError, EngineFatalError, SetupError


@plugin
class Dice(Engine):
    """Answers by chance, from the request's own seed."""

    incidental = frozenset({"latency", "fatal_after", "broken_start", "log"})

    name: str = "dice"
    latency: float = 0.0
    fatal_after: int | None = None
    broken_start: bool = False
    log: str | None = None

    def __post_init__(self) -> None:
        self.asked: list[str] = []
        self.closed = 0

    @property
    def model(self) -> str:
        return self.name

    async def start(self) -> None:
        if self.broken_start:
            raise SetupError("no dice here", hint="Buy some.")

    async def complete(self, request: Request) -> Completion:
        if self.fatal_after is not None and len(self.asked) >= self.fatal_after:
            raise EngineFatalError("the dice are gone")
        self.asked.append(request.id)
        if self.log:
            with Path(self.log).open("a") as file:
                file.write(request.id + "\n")
        # Which request finishes first depends on chance, so order of completion is really shuffled.
        await asyncio.sleep(self.latency * (request.seed % 7) / 7)
        face = request.seed % 10
        if face == 9:
            raise ContextLengthError("the dice are full")
        text = "?" if face == 8 else "ab"[face % 2]
        return Completion(text, input_tokens=10, output_tokens=1, latency=0.0)

    async def close(self) -> None:
        self.closed += 1
