"""Functions of expressions on texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.extensions.yaml_tasks.step_limits import Supply, room, take, weight

from ._guards import MAX_SIZE, UnfitValueError
from ._registered import as_text, function, gone_through

# ------------------------------------------------------------------------------------------ texts


@function
def str_(steps: Supply, x: Any) -> str:
    """The value as text."""
    take(steps, weight(x, MAX_SIZE))
    if not isinstance(x, str) and _has_sets(x):
        raise UnfitValueError("a set has no order to write it in: write str(list(x))")
    return str(x)


def _has_sets(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_sets, value)) or any(map(_has_sets, value.values()))
    return isinstance(value, (set, frozenset)) or (isinstance(value, (list, tuple)) and any(map(_has_sets, value)))


@function
def join(steps: Supply, separator: str, values: Any) -> str:
    """The texts one after another, with a separator between them."""
    parts = [as_text(one) for one in gone_through(steps, values)]
    length = sum(map(len, parts)) + len(as_text(separator)) * len(parts)
    room(length, MAX_SIZE)
    take(steps, length // 16)
    return separator.join(parts)


@function
def split(steps: Supply, text: str, separator: str | None = None) -> list[str]:
    """The parts of a text between separators; without one, its words."""
    take(steps, len(as_text(text)))
    return text.split(separator)


@function
def lower(steps: Supply, text: str) -> str:
    """The text in small letters."""
    take(steps, len(as_text(text)) // 16)
    return text.lower()


@function
def upper(steps: Supply, text: str) -> str:
    """The text in capitals."""
    take(steps, len(as_text(text)) // 16)
    return text.upper()


@function
def strip(steps: Supply, text: str) -> str:
    """The text without spaces and line ends around it."""
    take(steps, len(as_text(text)) // 16)
    return text.strip()


@function
def startswith(steps: Supply, text: str, start: str) -> bool:
    """Whether a text starts with another."""
    return as_text(text).startswith(as_text(start))


@function
def endswith(steps: Supply, text: str, end: str) -> bool:
    """Whether a text ends with another."""
    return as_text(text).endswith(as_text(end))


@function
def ord_(steps: Supply, character: str) -> int:
    """The number of a character."""
    return ord(character)


@function
def chr_(steps: Supply, number: int) -> str:
    """The character of a number."""
    if 0xD800 <= number <= 0xDFFF:
        raise UnfitValueError("half a character: no file can hold it")
    return chr(number)
