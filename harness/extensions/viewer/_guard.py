"""Which requests are allowed, and the headers of every answer.

Anything that a browser opens may send requests to 127.0.0.1. So the viewer answers only requests that were addressed to
this machine by name (else a foreign name could be pointed here: DNS rebinding) and that come from its own pages.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_NAMES: Final = frozenset({"127.0.0.1", "localhost", "::1"})
SECURITY: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


KEY: Final = "X-Harness-Key"
"""The header that shows that a page was opened by the address that the command printed."""


class Guard:
    """Refuses foreign requests and everything but GET and HEAD; adds `SECURITY` to all answers.

    Args:
        app: answers what is allowed.
        key: what requests that play an episode on (POST) must contain; None: there are no such requests.
    """

    def __init__(self, app: ASGIApp, key: str | None = None) -> None:
        self._app, self._key = app, key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # no web sockets

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SECURITY)
            await send(message)

        reason = _refusal(scope["method"], scope["path"], Headers(scope=scope), self._key)
        answer = PlainTextResponse(f"{reason[1]}\n", reason[0]) if reason else self._app
        await answer(scope, receive, sending)


def _refusal(method: str, path: str, headers: Headers, key: str | None) -> tuple[int, str] | None:
    """Status and reason for a request that gets no answer."""
    host = headers.get("host", "")
    if _name(f"//{host}") not in _NAMES:
        return 403, "this viewer answers to 127.0.0.1 and localhost only"
    if headers.get("origin", f"http://{host}") != f"http://{host}":
        return 403, "requests from other pages are refused"
    # A link on another page may open the viewer; what that page loads itself may not come from here.
    if headers.get("sec-fetch-site") in ("cross-site", "same-site") and headers.get("sec-fetch-mode") != "navigate":
        return 403, "requests from other pages are refused"
    is_play = path.rstrip("\n").endswith("/what_if")  # routes are patterns with $, which a line end may follow
    if method not in ("GET", "HEAD") and not (method == "POST" and is_play and key is not None):
        return 405, "the viewer only shows: GET and HEAD"
    if is_play and (key is None or not hmac.compare_digest(headers.get(KEY, "").encode(), key.encode())):
        return 403, "open the address that `harness view --what_if` printed"
    if method == "POST" and "origin" not in headers:  # browsers always send it
        return 403, "requests from other pages are refused"
    if method == "POST" and headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        return 415, "expected application/json"
    return None


def _name(url: str) -> str | None:
    """The host's name; None for what is not a host, or more than that."""
    try:
        parts = urlsplit(url)
        is_host = parts.path == parts.query == parts.fragment == "" and "@" not in url
        return parts.hostname if is_host and parts.port != 0 else None  # `port` raises for what is not a number
    except ValueError:
        return None
