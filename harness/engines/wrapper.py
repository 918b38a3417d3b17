"""What the gate and the cache have in common: they stand before an engine."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable
from functools import lru_cache

from harness.api import Completion, Facts
from harness.engine_api import (
    CallsTools,
    ComputesLikelihoods,
    ContinuesText,
    Engine,
    LikelihoodRequest,
    Request,
)
from harness.errors import EngineFatalError

_COUNTS, _COUNTED_CHARS = 1024, 20_000
"""How many texts, and of how many characters at most, have their tokens remembered: all that hear one ask the same."""


class Wrapper(Engine, CallsTools, ComputesLikelihoods, ContinuesText):
    """Passes on what every engine before another one passes on.

    Attributes:
        inner: answers what this one does not.
        engine: the engine behind all of them.
    """

    def __init__(self, inner: Engine) -> None:
        self.inner = inner
        self.engine: Engine = inner.engine if isinstance(inner, Wrapper) else inner
        self._counted = lru_cache(_COUNTS)(inner.count_tokens)

    @abstractmethod
    async def complete(self, request: Request | LikelihoodRequest) -> Completion:
        """Answer a request of either kind."""

    async def loglikelihood(self, request: LikelihoodRequest) -> Completion:
        return await self.complete(request)

    def ask(self, request: Request | LikelihoodRequest) -> Awaitable[Completion]:
        """Pass a request on. Raises `EngineFatalError` if the engine lacks the ability for it."""
        if isinstance(request, Request):
            if request.tools and not isinstance(self.inner, CallsTools):
                raise EngineFatalError(f"the engine of {self.model} offers no tools to its model")
            return self.inner.complete(request)
        if not isinstance(self.inner, ComputesLikelihoods):
            raise EngineFatalError(f"the engine of {self.model} computes no log-likelihoods")
        return self.inner.loglikelihood(request)

    @property
    def model(self) -> str:
        return self.inner.model

    def count_tokens(self, text: str) -> int | None:
        return self._counted(text) if len(text) <= _COUNTED_CHARS else self.inner.count_tokens(text)

    def report(self) -> Facts:
        return self.inner.report()
