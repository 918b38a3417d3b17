"""The keys by which programs reach a seat or its model: they are made here, and left out of what a run records."""

from __future__ import annotations

import os
import re
import secrets
from typing import Any

TOKEN = "HARNESS_SEAT_TOKEN"
"""The environment variable with the secret of served seats, should it stay the same from one command to the next."""
_MIN_TOKEN = 8
"""Characters of a secret that is looked for: a shorter one would be found in usual words."""
_KEYS = re.compile(r"sk-seat-[\w-]{8,}")


def new_key() -> str:
    """A random key, which `without_keys` finds."""
    return f"sk-seat-{secrets.token_urlsafe(24)}"


def without_keys(text: str, secret: str = "") -> str:
    """The text without keys of seats, the secret that the environment names, and another `secret`."""
    text = _KEYS.sub("…", text) if "sk-seat-" in text else text
    for one in (os.environ.get(TOKEN, ""), secret):
        if len(one) >= _MIN_TOKEN:
            text = text.replace(one, "…")
    return text


def body_without_keys(body: bytes) -> bytes:
    """The same for a body of HTTP, in UTF-8 or not."""
    return without_keys(body.decode(errors="surrogateescape")).encode(errors="surrogateescape")


def value_without_keys(value: Any, secret: str = "") -> Any:
    """The same for all texts of a value of JSON, names of fields among them."""
    if isinstance(value, str):
        return without_keys(value, secret)
    if isinstance(value, dict):
        return {value_without_keys(key, secret): value_without_keys(one, secret) for key, one in value.items()}
    return [value_without_keys(one, secret) for one in value] if isinstance(value, list) else value
