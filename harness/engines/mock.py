"""A function instead of a model: for tests, dry runs and measuring the harness itself."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from itertools import chain
from typing import Annotated, Any

from harness.api import Completion, Facts, Range, derive_seed, plugin
from harness.engine_api import CallsTools, ComputesLikelihoods, ContinuesText, Engine, LikelihoodRequest, Request

Answer = str | Completion


@plugin
class Mock(Engine, CallsTools, ComputesLikelihoods, ContinuesText):
    """Answers with a fixed text, or in Python with any function.

        Mock(function=lambda request: request.thread.messages[-1]["content"].upper())

    Args:
        model: the name in tables.
        text: the text of every reply.
        latency: seconds per reply.
        function: request → text or Completion, plain or async; may raise `EngineError`s as a real engine would. A
            Completion with `tool_calls` calls tools (`Request.tools`).
        likelihoods: request → one [log-likelihood, is_greedy] for each text. None: numbers that depend only on the text
            and on the texts before it.
    """

    model: str = "mock"
    text: str = ""
    latency: Annotated[float, Range(ge=0)] = 0.0
    function: Callable[[Request], Answer | Awaitable[Answer]] | None = field(default=None, repr=False)
    likelihoods: Callable[[LikelihoodRequest], Sequence[Sequence[float | bool]]] | None = field(
        default=None, repr=False
    )

    async def complete(self, request: Request) -> Completion:
        if self.latency:
            await asyncio.sleep(self.latency)
        answer: Any = self.text
        if self.function is not None:
            answer = self.function(request)
            if inspect.isawaitable(answer):
                answer = await answer
        return answer if isinstance(answer, Completion) else Completion(text=answer)

    async def loglikelihood(self, request: LikelihoodRequest) -> Completion:
        if self.latency:
            await asyncio.sleep(self.latency)
        asked = "" if request.rolling else request.thread.text + request.prefill
        texts = [(asked if t.context is None else str(t.context), t.text) for t in request.continuations]
        values = self.likelihoods(request) if self.likelihoods is not None else [_likelihood(*pair) for pair in texts]
        tokens = sum(map(self.count_tokens, chain.from_iterable(texts)))
        return Completion("", input_tokens=tokens, output_tokens=0, likelihoods=values)

    def count_tokens(self, text: str) -> int:
        """The number of its words."""
        return len(text.split())

    def describe(self) -> Facts:
        """The fields. A function is described by its name, so only `model` distinguishes two functions of the same
        name."""
        name = getattr(self.function, "__qualname__", type(self.function).__qualname__) if self.function else None
        return {**super().describe(), "function": name}


def _likelihood(context: str, text: str) -> list[float | bool]:
    """Numbers of about the size that a model gives."""
    draw = derive_seed(context, text)
    return [-len(text) * (draw % 1_000_003) / 1_000_003, draw % 4 == 0]
