"""Compares pairs of mathematical answers by the library `math-verify`; works in the process of `clock.py`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from harness.api.errors import SetupError

Compare = Callable[[Sequence[str], Sequence[str]], bool]


def comparing() -> Compare:
    """Import what comparisons need. Raises `SetupError` if the library cannot be imported."""
    logging.disable(logging.CRITICAL)  # it says at every call that no timeout is set
    try:
        equal(["1"], ["2"])  # imports and caches, which no question should pay for
    except ImportError as error:
        hint = "See why: python -c 'import math_verify'"
        raise SetupError(f"the package math-verify cannot be imported: {error}", hint=hint) from error
    return compare


def compare(a: Sequence[str], b: Sequence[str]) -> bool:
    """As `equal`; False whatever texts make the libraries raise."""
    try:
        return equal(a, b)
    except Exception:
        return False


def equal(a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether the library finds some reading of either answer the same, in either direction."""
    from math_verify import parse, verify

    one, two = ([p for text in texts for p in parse(f"${text}$", parsing_timeout=None)] for texts in (a, b))
    return bool(verify(one, two, timeout_seconds=None) or verify(two, one, timeout_seconds=None))
