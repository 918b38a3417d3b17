"""Keeping what is secret out of run records."""

from __future__ import annotations

import re
from typing import Any

_NAME = re.compile(r"key$|secret|passw|authorization|credential|(^|[_-])token$|cookie", re.IGNORECASE)


def without_secrets(value: Any) -> Any:
    """The value with "…" for everything below it whose name sounds like a secret's.

    >>> without_secrets({"api_key": "sk-1", "max_tokens": 3, "headers": {"Authorization": "Bearer x"}})
    {'api_key': '…', 'max_tokens': 3, 'headers': {'Authorization': '…'}}
    """
    if isinstance(value, dict):
        return {k: "…" if _NAME.search(str(k)) else without_secrets(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [without_secrets(v) for v in value]
    return value
