"""HTTP clients of the package `openai`, as the engine uses them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.api.errors import SetupError
from harness.extensions.openai import _bodies


def connect(
    urls: Sequence[str | None],
    key: Callable[[], str],
    timeout: float,
    on_headers: Callable[[Mapping[str, str]], None] = lambda headers: None,
) -> list[Any]:
    """A client for each address; None is the provider's own.

    Args:
        urls: the addresses.
        key: gives the key that is sent to all of them, "" for none; asked once the package is there.
        timeout: seconds to connect. Waiting for answers has a clock of its own (`Replica.post`).
        on_headers: called with those of each response.

    Raises:
        SetupError: no `openai` package, or one that is too old.
    """

    async def look(response: Any) -> None:
        on_headers(response.headers)

    try:
        import openai

        secret = key() or "none"
        # It takes a fifth of the CPU time of the default client.
        hooks = {"response": [_bodies.bound, look]}
        patience = openai.Timeout(None, connect=timeout)
        transports = [openai.DefaultAioHttpClient(timeout=patience, event_hooks=hooks) for _ in urls]
    except (ImportError, AttributeError, RuntimeError) as error:  # none, an old one, or one without aiohttp
        raise SetupError(
            f"the engine openai needs the package openai ({error})",
            hint='Install it: pip install "mas-eval-harness[openai]"',
        ) from error
    return [
        openai.AsyncOpenAI(
            api_key=secret,
            base_url=url,
            timeout=patience,
            default_headers={"Accept-Encoding": _bodies.ENCODINGS},
            max_retries=0,  # the client retries no garbled replies and cannot stop when the run ends
            http_client=transport,
        )
        for url, transport in zip(urls, transports, strict=True)
    ]
