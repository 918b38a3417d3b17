"""Values that models wrote, as text that every reader of UTF-8 and JSON takes."""

from __future__ import annotations

import json
from typing import Any, Final

from harness.api.printable import utf8
from harness.transcripts.plain import finite

_DEEP: Final = 50


def as_json(value: Any) -> str:
    """The value as JSON on one line; numbers that are not finite become null."""
    try:
        return utf8(json.dumps(value, ensure_ascii=False, allow_nan=False, default=str))
    except ValueError:
        return utf8(json.dumps(finite(value, 10_000), ensure_ascii=False))


def plain(value: Any) -> Any:
    """The value as `as_json` gives it to a reader; what is nested very deeply is its JSON as a text."""
    text = as_json(value)
    return json.loads(text) if _is_flat(value) else text


def _is_flat(value: Any, depth: int = 0) -> bool:
    if depth > _DEEP:
        return False
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return all(_is_flat(item, depth + 1) for item in items)
