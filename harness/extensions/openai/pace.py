"""How fast a server is asked that limits the rate of requests: one pace for all seats."""

from __future__ import annotations

import asyncio
from collections import deque

from harness.extensions.openai.waits import headers_and_text, limited_for

_RECOVERY = 60.0
"""Seconds in which the rate grows by as much as a refusal took from it."""
_SPAN = 60.0
"""Seconds over which the rate of answers is measured."""
_LEAST = 1 / 20
"""The slowest rate, in requests a second."""


class Pace:
    """The rate of requests to one server: additive increase, multiplicative decrease.

    It knows no bound until the first refusal (HTTP 429). That halves the rate at which the server has answered, for all
    requests, but not below what it has answered in the last minute; the rate grows again evenly. Refusals of requests
    that were sent before the last decrease say nothing new. Beside this nothing is sent before the time that the server
    names.

    Attributes:
        rate: requests a second; None: unbounded.
        refusals: since the last answer, those of requests that were in flight together as one.
    """

    def __init__(self) -> None:
        self.rate: float | None = None
        self.refusals = 0
        self._silent_since: float | None = None  # the first refusal since the last answer
        self._lost = 0.0
        self._grown = self._decreased = self._until = self._next = float("-inf")
        self._answers: deque[float] = deque(maxlen=10_000)
        self._began: float | None = None

    async def turn(self, ended: asyncio.Future[Exception], longest: float) -> float:
        """Wait until a request may go, or the engine has `ended`; returns when that is.

        `longest`: seconds between two requests, at most.
        """
        loop = asyncio.get_running_loop()
        while not ended.done():
            now = loop.time()
            if self._began is None:
                self._began = now
            wait = max(self._until, self._next) - now
            if wait <= 0:
                if self.rate is not None:
                    self._next = max(now, self._next) + min(longest, 1 / self.rate)
                return now
            await asyncio.wait({ended}, timeout=max(0.001, wait))  # what rounding leaves would come to no end
        return loop.time()

    def answered(self) -> None:
        """The server has answered a request."""
        now = asyncio.get_running_loop().time()
        self._answers.append(now)
        self.refusals, self._silent_since = 0, None
        if self.rate is not None:
            self.rate += self._lost * min(_RECOVERY, now - self._grown) / _RECOVERY
            self._grown = now

    def refused(self, sent: float, wait: float) -> None:
        """The server has refused a request for its rate.

        Args:
            sent: when the request went, by the loop's clock.
            wait: seconds in which no other is to go.
        """
        now = asyncio.get_running_loop().time()
        self._silent_since = now if self._silent_since is None else self._silent_since
        self._until = max(self._until, now + wait)
        if sent < self._decreased:
            return
        self.refusals += 1
        self._decreased = self._grown = now
        rate = self._measured(now) if self.rate is None else self.rate
        if rate == 0:  # others use up what there is
            return
        self.rate = max(_LEAST, rate / 2, self._recent(now) / _SPAN)
        self._lost = max(0.0, rate - self.rate)

    def limited(self, error: Exception, sent: float, backoff: float, longest: float) -> None:
        """As `refused`, for as long as the error says, but no longer than `longest`; without words of it for `backoff`
        seconds, doubled with each refusal."""
        asked = limited_for(*headers_and_text(error)) or backoff * 2.0 ** min(self.refusals, 60)
        self.refused(sent, min(asked, longest))

    def refuses_all(self, count: int, seconds: float) -> bool:
        """Whether it has refused more than so many requests, for at least so long, since it has answered one."""
        since = asyncio.get_running_loop().time() if self._silent_since is None else self._silent_since
        return self.refusals > count and asyncio.get_running_loop().time() - since >= seconds

    def _recent(self, now: float) -> int:
        return sum(now - when <= _SPAN for when in self._answers)

    def _measured(self, now: float) -> float:
        span = min(_SPAN, now - (now if self._began is None else self._began))
        return self._recent(now) / max(1.0, span)
