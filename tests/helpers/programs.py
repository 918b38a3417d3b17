"""Programs that play and call a model of the run: a stand-in for agents, without processes or servers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from typing import Any

from harness.api import CallsModels, Completion, Engine, Facts, InnerRequest, Request, TurnId, plugin
from harness.api.inner_calls import InnerDoor

Ask = Callable[..., Awaitable[Completion]]
"""Asks a text, or `messages`, with what else an `InnerRequest` has."""
Program = Callable[[Ask, Request], Awaitable[str]]


def said(request: Request) -> Completion:
    """What the model answers: 10 tokens in, 2 out."""
    return Completion(f"answer to {request.thread.messages[-1]['content']}", input_tokens=10, output_tokens=2)


@plugin
class Programs(CallsModels):
    """Plays with a coroutine that may ask its model; what it claims to have used is wrong."""

    program: Program = field(repr=False)
    inner: Engine
    limits: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def model(self) -> str:
        return "program"

    @property
    def inner_engine(self) -> Engine:
        return self.inner

    def __post_init__(self) -> None:
        self.inner_limits = self.limits

    def connect(self, calls: InnerDoor) -> None:
        self.door = calls

    async def complete(self, request: Request) -> Completion:
        turn = TurnId.of(request.id)
        seat = self.door.seat(turn.episode, turn.agent)

        async def ask(text: str, messages: Sequence[Facts] = (), **more: Any) -> Completion:
            asked = messages or [{"role": "user", "content": text}]
            return await seat.complete(InnerRequest("chat", "any", asked, **more))

        return Completion(await self.program(ask, request), input_tokens=999, cost=7.0)
