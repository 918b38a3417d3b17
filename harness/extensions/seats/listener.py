"""One HTTP server for the seats of a process, on this machine only: each has a path and a secret of its own."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from harness.api.errors import SetupError
from harness.extensions.seats.board import OpenSeat
from harness.extensions.seats.mcp_server import SeatServer

HOST = "127.0.0.1"
MAX_BODY = 4 * 1024 * 1024
"""Bytes of a request."""
MAX_SESSIONS = 64
"""Sessions of a seat at a time."""
MAX_CONNECTIONS = 2_000
_SECURITY = TransportSecuritySettings(
    enable_dns_rebinding_protection=True,
    allowed_hosts=["127.0.0.1:*", "localhost:*"],
    allowed_origins=["http://127.0.0.1:*", "http://localhost:*"],
)
logging.getLogger("mcp").addHandler(logging.NullHandler())  # what clients do wrong is theirs to read


@dataclass
class _Place:
    """A seat that is served, and the task that does so."""

    seat: OpenSeat
    server: SeatServer
    manager: StreamableHTTPSessionManager
    task: asyncio.Task[None] | None = None
    leave: asyncio.Event = field(default_factory=asyncio.Event)


class _InLoop(uvicorn.Server):
    """A server among the other tasks of a loop, which leaves signals to them."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class SeatListener:
    """Serves seats over MCP's streamable HTTP.

    Args:
        port: 0 for any free one.
    """

    def __init__(self, port: int = 0) -> None:
        self._port = port
        self._places: dict[str, _Place] = {}
        self._names: dict[OpenSeat, str] = {}
        self._socket: socket.socket | None = None
        self._server: _InLoop | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen. Raises `SetupError` if the port cannot be used."""
        there = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        there.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            there.bind((HOST, self._port))
            there.listen(256)
        except OSError as error:
            there.close()
            hint = "Give another one, or 0 for any that is free."
            raise SetupError(f"port {self._port} cannot be used: {error.strerror or error}", hint=hint) from None
        there.setblocking(False)
        self._socket = there
        config = uvicorn.Config(
            self._answer, interface="asgi3", lifespan="off", ws="none", log_config=None, log_level="critical",
            access_log=False, server_header=False, timeout_graceful_shutdown=1, limit_concurrency=MAX_CONNECTIONS,
        )  # fmt: skip
        self._server = _InLoop(config)
        self._task = asyncio.create_task(self._server.serve([there]))

    async def open(self, seat: OpenSeat, name: str | None = None) -> str:
        """Serve a seat; returns its URL. `name`: the part of it that names the seat; None: a random one."""
        assert self._socket is not None
        server = SeatServer(seat)
        manager = StreamableHTTPSessionManager(
            server.server, security_settings=_SECURITY, max_request_body_size=MAX_BODY, max_sessions=MAX_SESSIONS
        )
        place = _Place(seat, server, manager)
        ready = asyncio.Event()
        place.task = asyncio.create_task(_keep(place, ready))
        await ready.wait()
        name = name or secrets.token_urlsafe(9)
        self._places[name], self._names[seat] = place, name
        return f"http://{HOST}:{self._socket.getsockname()[1]}/seats/{name}/mcp"

    async def shut(self, seat: OpenSeat) -> None:
        """Serve a seat no more."""
        if (name := self._names.pop(seat, None)) is not None:
            place = self._places.pop(name)
            place.leave.set()
            if place.task is not None:
                await place.task

    async def close(self) -> None:
        """End all of it."""
        for seat in list(self._names):
            await self.shut(seat)
        if self._server is not None and self._task is not None:
            self._server.should_exit = self._server.force_exit = True
            await self._task
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer an HTTP request."""
        parts = scope["path"].strip("/").split("/")
        place = self._places.get(parts[1]) if len(parts) == 3 and parts[0] == "seats" and parts[2] == "mcp" else None
        given = dict(scope["headers"]).get(b"authorization", b"")
        if place is None:
            await _refuse(send, 404, "there is no such seat, or its episode is over")
        elif not hmac.compare_digest(given, b"Bearer " + place.seat.secret.encode()):
            await _refuse(send, 401, "the secret is not this seat's: send the header Authorization: Bearer SECRET")
        else:
            await place.manager.handle_request(scope, receive, send)


async def _keep(place: _Place, ready: asyncio.Event) -> None:
    async with place.manager.run():
        ready.set()
        await place.leave.wait()
        place.server.close()


async def _refuse(send: Any, status: int, why: str) -> None:
    body = json.dumps({"error": why}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(b"www-authenticate", b"Bearer")] if status == 401 else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
