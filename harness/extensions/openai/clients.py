"""HTTP clients of the package `openai`, as the engine uses them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.api.errors import SetupError
from harness.extensions.openai import bodies
from harness.plugins.manifests import is_installed


def check_installed() -> None:
    """Raise `SetupError` if there is no package `openai`; it is not imported."""
    if not is_installed("openai"):
        raise _missing("No module named 'openai'")


def _missing(why: object) -> SetupError:
    hint = 'Install it: pip install "mas-eval-harness[openai]"'
    return SetupError(f"the engine openai needs the package openai ({why})", hint=hint)


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
        hooks = {"response": [bodies.bound, look]}
        patience = openai.Timeout(None, connect=timeout)
        transports = [openai.DefaultAioHttpClient(timeout=patience, event_hooks=hooks) for _ in urls]
    except (ImportError, AttributeError, RuntimeError) as error:  # none, an old one, or one without aiohttp
        raise _missing(error) from error
    return [
        openai.AsyncOpenAI(
            api_key=secret,
            base_url=url,
            timeout=patience,
            default_headers={"Accept-Encoding": bodies.ENCODINGS},
            max_retries=0,  # the client retries no garbled replies and cannot stop when the run ends
            http_client=transport,
        )
        for url, transport in zip(urls, transports, strict=True)
    ]


def read_key(variable: str, own_server: bool) -> str:
    """The key in an environment variable, "" for none. Raises `SetupError` where the provider needs one.

    `own_server`: whether an address was given.
    """
    key = os.environ.get(variable, "")
    if not key and not own_server and not os.environ.get("OPENAI_BASE_URL"):
        raise SetupError(
            f"no API key: the environment variable {variable} is not set",
            hint=f"Set it, name another one with api_key_env=, or point base_url= at your own server.\n"
            f"  export {variable}=…",
        )
    return key
