"""Whether values given in YAML are of the types that a function's parameters have."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from harness.errors import PluginError


def check_types(what: str, function: Callable[..., Any], values: Mapping[str, Any], at: tuple[str | int, ...]) -> None:
    """Refuse values that are not of a parameter's type. Raises `PluginError`."""
    parameters = inspect.signature(function).parameters
    for key, value in values.items():
        hint = str(parameters[key].annotation) if key in parameters else "Any"
        if "Any" in hint or (value is None and "None" in hint):
            continue
        expected, valid = _expectation(hint, value)
        if not valid:
            raise PluginError(f"{what}: {key} must be {expected}, found {value!r:.60}", at=(*at, key))


def _expectation(annotation: str, value: Any) -> tuple[str, bool]:
    if any(word in annotation for word in ("list", "tuple", "Sequence")):
        return "a list of texts", isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
    if "bool" in annotation:
        return "true or false", isinstance(value, bool)
    if "float" in annotation:
        return "a number", isinstance(value, int | float) and not isinstance(value, bool)
    if "int" in annotation:
        return "a whole number", isinstance(value, int) and not isinstance(value, bool)
    return "a text", isinstance(value, str)
