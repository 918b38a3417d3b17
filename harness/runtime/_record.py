"""The shape of run.json: what a reader may rely on, whatever a person or a disk has done to the file."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

NEEDED = ("run", "spec", "spec_digest", "model", "identity", "code")
"""The keys that every run's record has."""
_Shape = tuple[str, Callable[[Any], bool]]


def problem(meta: Mapping[str, Any]) -> str | None:
    """What is wrong with a run's record, in words; None if nothing is. Keys that are not known may hold anything."""
    missing = [repr(key) for key in NEEDED if key not in meta]
    if missing:
        return f"missing required key{'s' * (len(missing) > 1)} {', '.join(missing)}"
    for key, (words, holds) in _SHAPES.items():
        if key in meta and not holds(meta[key]):
            return f"{key} must be {words}, found {meta[key]!r:.60}"
    return None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_time(value: Any) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _is_seconds(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < math.inf


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _of(inner: Callable[[Any], bool], kind: type = Mapping) -> Callable[[Any], bool]:
    def holds(value: Any) -> bool:
        items = value.values() if isinstance(value, Mapping) else value
        return isinstance(value, kind) and all(map(inner, items))

    return holds


def _or_null(inner: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or inner(value)


def _is_identity(value: Any) -> bool:
    return isinstance(value, Mapping) and all(_is_mapping(value.get(key, {})) for key in ("spec", "prompts"))


_TEXT: _Shape = "a text", _is_text
_FLAG: _Shape = "true or false", _is_flag
_MAPPING: _Shape = "a mapping", _is_mapping
_RECORDS: _Shape = "a mapping of records", _of(_is_mapping)
_LIST: _Shape = "a list of records", _of(_is_mapping, list)
_SHAPES: Mapping[str, _Shape] = {
    **dict.fromkeys(("run", "spec", "spec_digest", "model", "status"), _TEXT),
    **dict.fromkeys(("policies_only", "uses_ground_truth", "constrained"), _FLAG),
    **dict.fromkeys(("generation_kwargs", "engine_args", "versions", "hardware", "stopped"), _MAPPING),
    **dict.fromkeys(("judges", "engines"), _RECORDS),
    **dict.fromkeys(("graded_again", "earlier"), _LIST),
    "identity": ("a mapping with those of `spec` and `prompts`", _is_identity),
    "code": ("a mapping of mappings", _of(_of(_is_text))),
    "cases": ("a mapping of digests", _of(_is_text)),
    "journals": ("a mapping of lengths in bytes", _of(_is_count)),
    "executor": ("a mapping", _or_null(_is_mapping)),
    "planned": ("a number of episodes", _or_null(_is_count)),
    "duration": ("a number of seconds", _is_seconds),
    "command": ("a list of words", _of(_is_text, list)),
    **dict.fromkeys(("start", "session_start"), ("a time with its zone", _is_time)),
    "end": ("a time with its zone", _or_null(_is_time)),
}
