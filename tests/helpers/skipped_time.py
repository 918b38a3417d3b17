"""An event loop without waiting: where every task sleeps, its clock skips to the next that wakes."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Skipping(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    """Adds to a clock what it would have waited."""

    seconds = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout:
            self.seconds += timeout
        return super().select(0)


def skipping(work: Callable[[Callable[[], float]], Coroutine[Any, Any, T]]) -> T:
    """Run the work to its end. It gets the clock of its loop, which begins at 0."""
    selector = _Skipping()

    class Loop(asyncio.SelectorEventLoop):
        def time(self) -> float:
            return selector.seconds

    with asyncio.Runner(loop_factory=lambda: Loop(selector)) as runner:
        return runner.run(work(lambda: selector.seconds))
