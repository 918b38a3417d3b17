"""An engine that collects requests, and what it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from harness.api import Completion, Request
from harness.engines.mock import Mock


def by_seed(asked: Request) -> Completion:
    """What the model says: "a" or "b"."""
    return Completion("ab"[asked.seed % 2], input_tokens=1, output_tokens=1)


class Collector(Mock):
    """Answers what it has collected when it is told that all wait.

    Attributes:
        waves: ids of the requests that were answered together.
    """

    def __init__(self, answer: Callable[[Request], Completion] = by_seed) -> None:
        super().__init__()
        self.answer = answer
        self.collected: list[tuple[Request, asyncio.Future[None]]] = []
        self.waves: list[list[str]] = []

    @property
    def collects(self) -> bool:
        return True

    def collect(self, when_all_wait: Callable[[Callable[[], None]], None], path: Path) -> None:
        self._when_all_wait = when_all_wait

    def send(self) -> None:
        """Answer all."""
        collected, self.collected = self.collected, []
        self.waves.append([asked.id for asked, _ in collected])
        for _, answer in collected:
            answer.set_result(None)

    async def complete(self, request: Request) -> Completion:
        answer = asyncio.get_running_loop().create_future()
        self.collected.append((request, answer))
        self._when_all_wait(self.send)
        await answer
        return self.answer(request)

    def sizes(self) -> list[int]:
        """How many requests each wave had."""
        return [len(wave) for wave in self.waves]
