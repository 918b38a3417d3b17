"""How many requests and tokens a minute an engine is asked for, at most (`--rpm`, `--tpm`)."""

from __future__ import annotations

import asyncio
from collections import deque

from harness.api import Completion

_MINUTE = 60.0
_SOONEST = 0.001
"""Seconds that a wait takes at least: what rounding leaves of one would come to no end."""


class Rate:
    """Spreads requests evenly over each minute, and lets none go while the last minute's tokens are used up.

    Args:
        rpm: requests a minute; None: no bound.
        tpm: input and output tokens a minute; None: no bound. A request's tokens are known when it is answered: those
            in flight count as many as the mean of those before.
    """

    def __init__(self, rpm: int | None = None, tpm: int | None = None) -> None:
        self._gap, self._tpm = _MINUTE / rpm if rpm else 0.0, tpm
        self._next = float("-inf")
        self._recent: deque[tuple[float, int]] = deque()
        self._used = self._in_flight = 0
        self._mean = 0.0
        self._changed = asyncio.Event()
        self._halted = False

    async def take(self) -> None:
        """Wait until a request may go; `give` must follow, also where this is cancelled."""
        try:
            await self._turn()
        finally:
            self._in_flight += 1

    async def _turn(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._halted:
            now = loop.time()
            self._forget(now)
            wait = self._next - now
            if self._tpm is not None and self._used + self._mean * self._in_flight >= self._tpm:
                wait = max(wait, self._recent[0][0] + _MINUTE - now if self._recent else _MINUTE)
            if wait <= 0:
                break
            self._changed.clear()
            await _either(self._changed, max(_SOONEST, wait))
        self._next = max(loop.time(), self._next) + self._gap

    def give(self, answer: Completion | None) -> None:
        """A request is done; None: it failed, and its tokens are not known."""
        self._in_flight -= 1
        if self._tpm is not None and answer is not None:
            tokens = (answer.input_tokens or 0) + (answer.output_tokens or 0)
            self._recent.append((asyncio.get_running_loop().time(), tokens))
            self._used += tokens
            self._mean += (tokens - self._mean) / min(50, len(self._recent))
        self._changed.set()

    def halt(self) -> None:
        """The run is about to end: nothing waits any longer."""
        self._halted = True
        self._changed.set()

    def _forget(self, now: float) -> None:
        while self._recent and now - self._recent[0][0] >= _MINUTE:
            self._used -= self._recent.popleft()[1]


async def _either(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, or so long."""
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({waiting}, timeout=seconds)
    finally:
        waiting.cancel()
