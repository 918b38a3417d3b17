"""Calls of tools: what a model is offered, and the arguments that it gives."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

_SHOWN = 80
"""Characters of unreadable arguments that an error shows."""


def schema(required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Any]:
    """The JSON schema of arguments that are texts."""
    properties = {name: {"type": "string"} for name in (*required, *optional)}
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def arguments_of(text: str) -> dict[str, str] | str:
    """(argument → text) of a call, or what is wrong with its arguments.

    They are a JSON object, or nothing for a call that needs none. What is not text counts as its JSON, null as missing.

    >>> arguments_of('{"answer": [1, 2], "note": null, "to": "Ann"}')
    {'answer': '[1, 2]', 'to': 'Ann'}
    """
    try:
        values = json.loads(text) if text.strip() else {}
        if isinstance(values, dict):
            return {name: _as_text(value) for name, value in values.items() if value is not None}
    except (ValueError, RecursionError):
        pass
    shown = " ".join(text[:_SHOWN].split()) + ("…" if len(text) > _SHOWN else "")
    return f"the arguments are no JSON object: {shown}"


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
