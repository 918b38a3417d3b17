"""What the gate and the cache have in common: they stand before an engine."""

from __future__ import annotations

from harness.api import Facts
from harness.engine_api import CountsTokens, Engine, Reports


class Wrapper(Engine, CountsTokens, Reports):
    """Passes on what every engine before another one passes on.

    Attributes:
        inner: answers what this one does not.
        engine: the engine behind all of them.
    """

    def __init__(self, inner: Engine) -> None:
        self.inner = inner
        self.engine: Engine = inner.engine if isinstance(inner, Wrapper) else inner

    @property
    def model(self) -> str:
        return self.inner.model

    def count_tokens(self, text: str) -> int | None:
        return self.inner.count_tokens(text) if isinstance(self.inner, CountsTokens) else None

    def report(self) -> Facts:
        return self.inner.report() if isinstance(self.inner, Reports) else {}
