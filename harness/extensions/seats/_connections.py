"""Connections to the server of seats: how many there may be, and how long a request may take to come."""

from __future__ import annotations

import asyncio
import json
import resource
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 2_000
"""Connections at a time; at most half of the files that this process may open."""
PATIENCE = 30.0
"""Seconds that the head of a request may take to come."""


class SeatConnections:
    """All connections of a server. One more than `most` closes the oldest that has sent no request; where there is
    none, the one that has been idle for longest; where all are busy, itself.

    Args:
        most: how many.
        patience: seconds that the head of a request may take to come.
    """

    def __init__(self, most: int = MAX_CONNECTIONS, patience: float = PATIENCE) -> None:
        self.most, self.patience = min(most, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2), patience
        self._strangers: dict[SeatConnection, None] = {}
        self._idle: dict[SeatConnection, None] = {}
        self._busy: set[SeatConnection] = set()

    def __call__(self, *arguments: Any, **named: Any) -> SeatConnection:
        """A connection, made of what the server gives to its protocol."""
        return SeatConnection(self, *arguments, **named)

    def __len__(self) -> int:
        return len(self._strangers) + len(self._idle) + len(self._busy)

    def add(self, one: SeatConnection) -> None:
        """A new connection."""
        if len(self) >= self.most:
            oldest = next(iter(self._strangers), None) or next(iter(self._idle), one)
            self.remove(oldest)
            oldest.transport.abort()
            if oldest is one:
                return
        self._strangers[one] = None

    def remove(self, one: SeatConnection) -> None:
        """A connection that is closed."""
        self._strangers.pop(one, None)
        self._idle.pop(one, None)
        self._busy.discard(one)

    def note(self, one: SeatConnection) -> None:
        """A connection has begun to answer a request, or has answered one."""
        if one.is_busy and one not in self._busy:
            self.remove(one)
            self._busy.add(one)
        elif not one.is_busy and one in self._busy:
            self._busy.remove(one)
            self._idle[one] = None


class SeatConnection(H11Protocol):
    """A connection."""

    def __init__(self, pool: SeatConnections, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._pool = pool
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._pool.add(self)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._pool.remove(self)
        self._no_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        self._pool.note(self)
        super().on_response_complete()
        if self.is_busy:
            self._watch()

    def _watch(self) -> None:
        """Close the connection if what it has begun to send does not become a request in time."""
        self._pool.note(self)
        if self.is_busy:
            self._no_deadline()
        elif self._deadline is None and not self.transport.is_closing():
            self._deadline = self.loop.call_later(self._pool.patience, self.transport.abort)

    def _no_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


async def refuse(send: Any, status: int, why: str) -> None:
    """Answer a request with an error."""
    body = json.dumps({"error": why}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(b"www-authenticate", b"Bearer")] if status == 401 else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
