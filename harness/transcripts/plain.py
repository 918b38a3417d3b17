"""Values that plugins and models gave, as JSON knows them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def finite(value: Any, deepest: int = 100) -> Any:
    """The value as JSON knows it: numbers that are not finite are null, and what lies deeper than `deepest` is "…"."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str | int | None):
        return value
    if deepest < 0:
        return "…"
    if isinstance(value, Mapping):
        return {str(key): finite(item, deepest - 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [finite(item, deepest - 1) for item in value]
    return str(value)
