"""Ports, and the server: on this machine only."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool

from harness.api.errors import SetupError

HOST, PORT = "127.0.0.1", 8400
_TRIED = 50


def free_socket(port: int | None = None) -> socket.socket:
    """A socket bound to 127.0.0.1.

    Args:
        port: the port; 0 for any free one; None for the first free one from 8400 on.

    Raises:
        SetupError: the port, or all of those, is in use or not allowed.
    """
    for candidate in range(PORT, PORT + _TRIED) if port is None else (port,):
        there = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        there.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            there.bind((HOST, candidate))
            there.listen(128)
            return there
        except OSError as error:
            there.close()
            if port is not None:
                reason = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
                raise SetupError(f"port {port} {reason}", hint="Leave --port out to take the next free one.") from None
    raise SetupError(f"ports {PORT} to {PORT + _TRIED - 1} are all in use", hint="Give a free one with --port.")


class _Server(uvicorn.Server):
    """Ends what would keep it waiting."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        application: Any = self.config.app
        await run_in_threadpool(application.state.close)
        await super().shutdown(sockets)


def serve(application: Starlette, there: socket.socket, on_start: Callable[[str], None] = lambda url: None) -> None:
    """Answer requests until Ctrl-C or SIGTERM.

    Args:
        application: an ASGI application, as `_app` makes it.
        there: what `free_socket` gave.
        on_start: called with the URL before the first request.
    """
    config = uvicorn.Config(
        application,
        log_level="warning",
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=10,
        ws="none",
    )
    try:
        on_start(f"http://{HOST}:{there.getsockname()[1]}/")
        application.state.warm()
        with contextlib.suppress(KeyboardInterrupt):
            _Server(config).run([there])
    finally:
        application.state.close()
        there.close()
