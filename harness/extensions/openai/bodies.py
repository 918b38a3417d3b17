"""How much of a server's response is read: an endless body, and a small one that unpacks to gigabytes, end early."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any

from harness.extensions.openai.wire import ID_HEADER, GarbledError, check_id

MAX_BODY_BYTES = 1 << 23
"""Bytes of a response, unpacked. A reply of a million tokens takes about half of it."""
MAX_SCORES_BYTES = 1 << 26
"""The same for lists of models, and for `/completions`, which returns log-probabilities of every token."""
MAX_FILE_BYTES = 1 << 30
"""The same for a file of answers to a batch."""
ENCODINGS = "gzip, deflate"
"""What servers may pack bodies with: these are unpacked step by step."""


async def bound(response: Any) -> None:
    """Let no more of a response's body be read than it may have; an event hook of the HTTP client.

    Raises `GarbledError` for a body that is packed in a way that was not asked for, and where a header says that it
    answers another request.
    """
    check_id(response.request.headers.get(ID_HEADER, ""), response.headers.get(ID_HEADER))
    packing = response.headers.get("content-encoding", "identity").lower()
    if packing not in ("identity", *ENCODINGS.split(", ")):  # several, one in another, multiply too
        raise GarbledError(f"the server packs its response as {packing[:100]!r}")
    path = response.request.url.path
    large = path.endswith("/models") or (path.endswith("/completions") and "/chat" not in path)
    most = MAX_SCORES_BYTES if large else MAX_BODY_BYTES
    most = MAX_FILE_BYTES if path.endswith("/content") else most
    response.aiter_bytes = _bounded(response.aiter_bytes, most)


def _bounded(read: Callable[..., AsyncGenerator[bytes, None]], most: int) -> Callable[..., AsyncGenerator[bytes, None]]:
    async def aiter_bytes(*args: Any) -> AsyncGenerator[bytes, None]:
        size = 0
        async with contextlib.aclosing(read(*args)) as parts:
            async for part in parts:
                if (size := size + len(part)) > most:
                    raise GarbledError(f"the server's response is longer than any answer: more than {most:,} bytes")
                yield part

    return aiter_bytes
