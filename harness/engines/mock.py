"""A function instead of a model: for tests, dry runs and measuring the harness itself."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import Annotated, Any

from harness.api import CallsTools, Completion, ContinuesText, Engine, Facts, Range, Request, plugin

Answer = str | Completion


@plugin
class Mock(Engine, CallsTools, ContinuesText):
    """Answers with a fixed text, or in Python with any function.

        Mock(function=lambda request: request.thread.messages[-1]["content"].upper())

    Args:
        model: the name in tables.
        text: the text of every reply.
        latency: seconds per reply.
        function: request → text or Completion, plain or async; may raise `EngineError`s as a real engine would. A
            Completion with `tool_calls` calls tools. A form with an `ability` takes no text: its answer is invented.
    """

    any_request = True

    model: str = "mock"
    text: str = ""
    latency: Annotated[float, Range(ge=0)] = 0.0
    function: Callable[[Request], Answer | Awaitable[Answer]] | None = field(default=None, repr=False)

    async def complete(self, request: Request) -> Completion:
        if self.latency:
            await asyncio.sleep(self.latency)
        if self.function is None:
            return request.mock_answer(self.text)
        answer: Any = self.function(request)
        if not isinstance(answer, str) and inspect.isawaitable(answer):
            answer = await answer
        return answer if isinstance(answer, Completion) else request.mock_answer(answer)

    def count_tokens(self, text: str) -> int:
        """The number of its words."""
        return len(text.split())

    def describe(self) -> Facts:
        """The fields. A function is described by its name, so only `model` distinguishes two functions of the same
        name."""
        name = getattr(self.function, "__qualname__", type(self.function).__qualname__) if self.function else None
        return {**super().describe(), "function": name}
