"""Fields of a reply as arguments of a tool, made from what a form declares (`Reply.fields`)."""

from __future__ import annotations

import json
from typing import Any

from harness.api import Reply

_QUOTED_CHARS = 80
"""Characters of unreadable arguments that an error shows."""


def parameters(form: Reply) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments: one for each field, with its type, range or options, and what it is."""
    schema = form.json_schema
    for one in form.fields:
        if about := one.words or (f"What stands after {one.lead!r}" if one.lead else ""):
            schema["properties"][one.name] = {**one.schema, "description": about}
    return schema


def read_arguments(arguments: str) -> dict[str, Any] | str:
    """(argument → value) of a call, or what is wrong with its arguments: they are a JSON object, or nothing."""
    try:
        values = json.loads(arguments) if arguments.strip() else {}
        if isinstance(values, dict):
            return values
    except (ValueError, RecursionError):
        pass
    shown = " ".join(arguments[:_QUOTED_CHARS].split()) + ("…" if len(arguments) > _QUOTED_CHARS else "")
    return f"the arguments are no JSON object: {shown}"
