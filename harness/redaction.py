"""Keeping keys and passwords out of everything that is written down."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_NAME = re.compile(r"key$|secret|passw|authorization|credential|(^|[_-])token$|cookie", re.IGNORECASE)
# Inside a word of a command line: `api_key=x`, `{Authorization: Bearer x}`, `https://user:x@host`;
# not `max_tokens=x`, not `api_key_env=x`.
_INSIDE = (
    re.compile(
        r"""((?:key|token|secret|password|authorization)["']?\s*[=:]\s*["']?(?:bearer\s+)?)[^,\s"'}]+""", re.IGNORECASE
    ),
    re.compile(r"(://[^/\s:@]+:)[^/\s@]+(?=@)"),
)


def without_secrets(value: Any) -> Any:
    """The value with "…" for every text below it whose name, or the word before it, sounds like a secret's.

    >>> without_secrets({"api_key": "sk-1", "max_tokens": 3, "headers": ["Authorization: Bearer x"]})
    {'api_key': '…', 'max_tokens': 3, 'headers': ['Authorization: Bearer …']}
    """
    if isinstance(value, Mapping):
        return {
            key: "…" if _NAME.search(str(key)) and item is not None else without_secrets(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [without_secrets(item) for item in value]
    if isinstance(value, str):
        for pattern in _INSIDE:
            value = pattern.sub(r"\1…", value)
    return value
