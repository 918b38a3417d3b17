"""Whether a server can be used, found out before a run's first request, and what a person has to mend where not."""

from __future__ import annotations

import asyncio
import ipaddress
import urllib.request
from collections.abc import Callable
from urllib.parse import urlsplit

from harness.api.errors import SetupError, near
from harness.extensions.openai.card import Card
from harness.extensions.openai.replicas import Replica
from harness.extensions.openai.tokens import TokenFields
from harness.extensions.openai.wire import GarbledError


async def check(
    replica: Replica,
    model: str | None,
    timeout: float,
    key: str,
    line: Callable[[Exception], str],
    card: Card | None,
    tokens: TokenFields | None = None,
) -> SetupError | None:
    """Find out whether a server can answer; returns why not.

    Args:
        replica: the server.
        model: the model that it must have; None: any.
        timeout: seconds for each question.
        key: the environment variable with the key.
        line: an error in one line.
        card: what is known of it.
        tokens: what its replies must say of tokens; None: nothing.

    Raises:
        SetupError: what a person has to mend, at whichever server.
    """
    where = replica.name
    try:
        replica.listed = await replica.probe(timeout)
        if model is not None and await replica.refuses_model(model, timeout):
            raise SetupError(f"{where} has no model {model!r:.200}", hint=near(model, replica.listed))
        await replica.read_slots(timeout)
        if tokens is not None and model is not None:
            async with asyncio.timeout(timeout):
                await tokens.check(replica, model)
    except SetupError:
        raise
    except Exception as error:
        nearby = proxy_hint(str(replica.client.base_url))
        if (status := getattr(error, "status_code", None)) in (401, 403):
            hint = f"Put a valid key into the environment variable {key}."
            raise SetupError(f"{where} refuses the key (HTTP {status})", hint=nearby or hint) from error
        replica.mark_unhealthy(line(error))
        hint = "Start it first (e.g. `vllm serve <model>`), wait until it is ready, and check base_url=: "
        hint += "it usually ends in /v1."
        if isinstance(error, GarbledError):
            hint = "Is base_url= the API's address (…/v1)? A page to log in is that of a gateway before it."
        return SetupError(f"no usable server at {where}: {line(error)}", hint=nearby or hint)
    if card is not None:
        _compare(replica, model, card)
    return None


def _compare(replica: Replica, model: str | None, card: Card) -> None:
    """Raises `SetupError` where the card is about another model, or the server has another window now."""
    hint = f"Ask again: harness probe {replica.name} -o FILE"
    if model != card.model:
        raise SetupError(
            f"the card is about the model {card.model!r:.200}, and the run about {model!r:.200}", hint=hint
        )
    listed = replica.limits.get(card.model)
    if listed and card.window and listed != card.window:
        what = f"the card says a window of {card.window:,} tokens, and {replica.name} lists {listed:,} now"
        raise SetupError(what, hint=hint)


def proxy_hint(url: str) -> str | None:
    """What to do where a proxy of the environment stands before a server on this machine or in its network; None where
    none does."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    proxies = urllib.request.getproxies_environment()
    scheme = next((one for one in (parts.scheme, "all") if proxies.get(one)), None)
    if scheme is None or urllib.request.proxy_bypass(host) or not _is_near(host):
        return None
    return (
        f"{scheme.upper()}_PROXY is set, so that requests to {host} go to that proxy. Name the host in NO_PROXY:\n"
        f"  export NO_PROXY={host}"
    )


def _is_near(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host == "localhost" or "." not in host or host.endswith((".local", ".internal", ".lan"))
