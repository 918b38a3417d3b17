"""One HTTP server for the seats of a process, on this machine only: each has a path and a secret of its own."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, cast

import uvicorn

from harness.api.errors import SetupError
from harness.extensions.seats._connections import MAX_CONNECTIONS, PATIENCE, SeatConnections, refuse
from harness.extensions.seats.board import OpenSeat

HOST = "127.0.0.1"


class SeatApplication(Protocol):
    """What serves one seat over HTTP: an application of ASGI, which asks for the seat's secret.

    Attributes:
        url: where clients connect.
    """

    url: str

    async def start(self) -> None:
        """Called before the first request."""

    async def close(self) -> None:
        """End what clients wait for."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request below the seat's path."""


def application(kind: str, seat: OpenSeat, url: str, about: str = "") -> SeatApplication:
    """What serves a seat at a URL. `kind`: a key of `PACKAGES`; `about`: what is played."""
    if kind == "mcp":
        from harness.extensions.seats.mcp_server import SeatMCP

        return SeatMCP(seat, url)
    from harness.extensions.seats.a2a_server import SeatA2A

    served: SeatApplication = SeatA2A(seat, url, about)
    return served


@dataclass
class _Place:
    """A seat that is served."""

    seat: OpenSeat
    application: SeatApplication


class _InLoop(uvicorn.Server):
    """A server among the other tasks of a loop, which leaves signals to them."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class SeatListener:
    """Serves seats over HTTP.

    Args:
        port: 0 for any free one.
        most: connections at a time; at most half of the files that this process may open.
        patience: seconds that the head of a request may take to come.
    """

    def __init__(self, port: int = 0, most: int = MAX_CONNECTIONS, patience: float = PATIENCE) -> None:
        self._port, self._connections = port, SeatConnections(most, patience)
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
            access_log=False, server_header=False, timeout_graceful_shutdown=1,
            http=cast(Any, self._connections),
        )  # fmt: skip
        self._server = _InLoop(config)
        self._task = asyncio.create_task(self._server.serve([there]))

    async def open(self, seat: OpenSeat, name: str | None = None, kind: str = "mcp", about: str = "") -> str:
        """Serve a seat; returns the URL for clients.

        Args:
            seat: the seat.
            name: the part of the URL that names it; None: a random one.
            kind: a key of `PACKAGES`.
            about: what is played.
        """
        assert self._socket is not None
        name = name or secrets.token_urlsafe(9)
        url = f"http://{HOST}:{self._socket.getsockname()[1]}/seats/{name}"
        served = application(kind, seat, url, about)
        await served.start()
        self._places[name], self._names[seat] = _Place(seat, served), name
        return served.url

    async def shut(self, seat: OpenSeat) -> None:
        """Serve a seat no more."""
        if (name := self._names.pop(seat, None)) is not None:
            await self._places.pop(name).application.close()

    async def close(self) -> None:
        """End all of it."""
        for seat in list(self._names):
            await self.shut(seat)
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            await self._task
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    @property
    def open_connections(self) -> int:
        """How many connections there are."""
        return len(self._connections)

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer an HTTP request."""
        parts = scope["path"].split("/", 3)
        place = self._places.get(parts[2]) if len(parts) > 2 and parts[1] == "seats" else None
        if place is None:
            await refuse(send, 404, "there is no such seat, or its episode is over")
        else:
            await place.application(scope, receive, send)
