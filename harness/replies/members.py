"""What objects of JSON in a reply say under a name, also broken ones. Loaded for replies with an object alone."""

from __future__ import annotations

import json
import re
from typing import Any

from .json_fields import BEFORE_KEY, json_fields
from .literals import read

as_json = json.JSONEncoder(ensure_ascii=False).encode
_JOINTS = re.compile(r"[\s_-]+")


def member_of(value: dict[str, Any], key: re.Pattern[str]) -> tuple[str, dict[str, Any]] | None:
    """What an object says under a name that `key` matches, and the object without it; None if it does not have it."""
    without = dict(value)
    inner: Any = without
    while isinstance(inner, dict):
        name = next((name for name in inner if _is_named(name, key)), None)
        if name is not None:
            return _as_text(inner.pop(name)), without
        nested = next((name for name in inner if isinstance(inner[name], dict)), None)  # {"response": {…}}
        if nested is not None:
            inner[nested] = dict(inner[nested])
        inner = inner.get(nested)
    return None


def _is_named(name: str, key: re.Pattern[str]) -> bool:
    return key.fullmatch(_JOINTS.sub("", name)) is not None


_KEY = re.compile(rf"{BEFORE_KEY}[\"'“‘`][ \t]*+([\w -]{{1,60}}?)[ \t]*+[\"'”’`][ \t]*+[:：]\s*+")


def in_broken_object(text: str, key: re.Pattern[str]) -> tuple[str, int, int, str] | None:
    """What stands after a name that `key` matches, where no parser of JSON reads the object: the text, where it begins
    and ends with its name, and what replaces it."""
    names = list(_KEY.finditer(text))
    for i, name in reversed(list(enumerate(names))):
        if _is_named(name[1], key):
            end = names[i + 1].start() if i + 1 < len(names) else len(text)
            closing = "}" if i + 1 < len(names) else ""  # before another key a value is whole
            values = json_fields(f'{{"{name[1]}": {text[name.end() : end]}{closing}', (name[1],))
            if name[1] not in values:  # its string is never closed
                return None
            return _as_text(values[name[1]]), name.start() + 1, end, "" if closing else "}"
    return None


_SAYS = frozenset(("message", "content", "text", "body", "msg", "value"))


def text_in(said: str) -> str | None:
    """The text that an object says which has one: {"to": "all", "text": "I go first"}, or a list of such an object.

    None if `said` is no such object, or has several texts or none.
    """
    bare = said.strip()
    if not bare.startswith(("{", "[")) or not bare.endswith(("}", "]")):
        return None
    value = read(bare)
    while isinstance(value, (dict, list)):
        items = list(value)
        if isinstance(value, dict):
            items = [item for key, item in value.items() if key.strip().casefold() in _SAYS]
        if len(items) != 1:
            return None
        value = items[0] if isinstance(value, dict) else value[0]
    return _as_text(value) if value is None or isinstance(value, str) else None


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else as_json(value)
