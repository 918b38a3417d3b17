"""Where functions of expressions are registered, and what they share.

Functions are pure, and take the supply of steps first. The first line of a docstring is the function's line in the
documentation (docs/reference/expressions.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from harness.extensions.yaml_tasks.step_limits import Supply, counted

from ._guards import UnfitValueError, entries, short

FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {}


def function(one: Callable[..., Any]) -> Callable[..., Any]:
    """Add a function under its name, without the `_` that keeps it apart from Python's own."""
    FUNCTIONS[one.__name__.rstrip("_")] = one
    return one


def gone_through(steps: Supply, values: Any) -> Any:
    """What a function goes through, a step per entry."""
    return counted(steps, entries(steps, values))


def as_text(value: Any) -> str:
    """The text. Raises `UnfitValueError` for other values."""
    if not isinstance(value, str):
        raise UnfitValueError(f"it takes a text, not {short(value):.40}")
    return value
