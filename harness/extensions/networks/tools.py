"""Calls of tools: what a model is offered, and the arguments that it gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.api import as_text
from harness.replies.arguments import read_arguments


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
    values = read_arguments(text)
    if isinstance(values, str):
        return values
    return {name: as_text(value) for name, value in values.items() if value is not None}
