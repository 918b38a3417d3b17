"""Connections to the server: how many there may be, how long a request may take to come, and who is closed first."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from aiohttp import web

LINGER = 2.0
"""Seconds for which the rest of a refused request is read and dropped, so that its sender gets to see the refusal."""
IDLE = 300.0
"""Seconds after which a connection without a request is closed."""
_SETTINGS: dict[str, Any] = {
    "access_log": None, "keepalive_timeout": IDLE, "max_line_size": 8190, "max_headers": 100,
    "max_field_size": 8190,
}  # fmt: skip


def _refusal(status: str, message: str) -> bytes:
    """A reply to a connection whose request was not read."""
    body = f'{{"error": {{"message": "{message}", "type": "server_error", "param": null, "code": null}}}}'
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {len(body)}"
    return f"{head}\r\n\r\n{body}".encode()


_FULL = _refusal("503 Service Unavailable", "too many connections are busy")
_LATE = _refusal("408 Request Timeout", "the request takes too long to come")
_log = logging.getLogger("harness.endpoints")
Refusal = Callable[[int], web.Response]


class Connection(web.RequestHandler):
    """A connection.

    Attributes:
        busy: whether a call is being answered.
        waits_since: when the request began to come that is not there as a whole, by the loop's clock.
    """

    __slots__ = ("_pool", "busy", "waits_since")

    def __init__(self, pool: Connections, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(pool.server, loop=loop, lingering_time=min(LINGER, pool.patience), **_SETTINGS)
        self._pool = pool
        self.busy = False
        self.waits_since: float | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.waits_since = self._loop.time()
        self._pool.add(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._pool.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.waits_since is None and not self.busy:
            self.waits_since = self._loop.time()
        super().data_received(data)

    def refuse(self, why: bytes) -> None:
        """Close it with a reply."""
        if self.transport is not None:
            self.transport.write(why)
        self.force_close()

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """What is no HTTP, or failed here. Neither the request nor a traceback is shown: both may hold a secret."""
        if status >= 500:
            _log.error("a request failed: %s", type(exc).__name__)
        return self._pool.refusal(status)

    def log_exception(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: `handle_error`."""


class Connections:
    """All connections of a server, at most `limit`.

    One more closes the oldest that has shown no seat's secret; where there is none, the one that has been idle for
    longest; where all are busy, itself.
    """

    def __init__(self, server: web.Server, refusal: Refusal, limit: int, patience: float) -> None:
        self.server, self.refusal = server, refusal
        self.limit, self.patience = limit, patience
        self._loop = asyncio.get_running_loop()
        self._strangers: dict[Connection, None] = {}
        self._idle: dict[Connection, None] = {}
        self._busy: set[Connection] = set()
        self._timer = self._loop.call_later(patience / 2, self._sweep)

    def __call__(self) -> Connection:
        return Connection(self, self._loop)

    def __len__(self) -> int:
        return len(self._strangers) + len(self._idle) + len(self._busy)

    def add(self, one: Connection) -> None:
        """A new connection."""
        if len(self) >= self.limit:
            oldest = next(iter(self._strangers), None) or next(iter(self._idle), None)
            if oldest is None:
                one.refuse(_FULL)
                return
            self.remove(oldest)
            oldest.force_close()
        self._strangers[one] = None

    def remove(self, one: Connection) -> None:
        """A connection that is closed."""
        self._strangers.pop(one, None)
        self._idle.pop(one, None)
        self._busy.discard(one)

    def begin(self, one: Connection) -> None:
        """A request with a seat's secret has begun to come."""
        self.remove(one)
        one.busy = True
        self._busy.add(one)

    def end(self, one: Connection) -> None:
        """It is answered."""
        one.busy, one.waits_since = False, None
        if one in self._busy:
            self._busy.remove(one)
            self._idle[one] = None

    def close(self) -> None:
        """Stop watching."""
        self._timer.cancel()

    def _sweep(self) -> None:
        """Close the connections whose request takes too long to come."""
        late = self._loop.time() - self.patience
        for one in [*self._strangers, *self._idle, *self._busy]:
            if one.waits_since is not None and one.waits_since <= late:
                one.refuse(_LATE)
        self._timer = self._loop.call_later(self.patience / 2, self._sweep)
