"""Values that models wrote, as text that every reader of UTF-8 and JSON takes."""

from __future__ import annotations

import json
import math
from typing import Any, Final

from harness.printable import utf8

_DEEP: Final = 50


def as_json(value: Any) -> str:
    """The value as JSON on one line; numbers that are not finite become null."""
    try:
        return utf8(json.dumps(value, ensure_ascii=False, allow_nan=False, default=str))
    except ValueError:
        return utf8(json.dumps(_finite(value), ensure_ascii=False, default=str))


def plain(value: Any) -> Any:
    """The value as `as_json` gives it to a reader; what is nested very deeply is its JSON as a text."""
    text = as_json(value)
    return json.loads(text) if _is_flat(value) else text


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _is_flat(value: Any, depth: int = 0) -> bool:
    if depth > _DEEP:
        return False
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return all(_is_flat(item, depth + 1) for item in items)
