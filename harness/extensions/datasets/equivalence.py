"""Whether two mathematical answers are equal: by their normal forms, or by their meaning."""

from __future__ import annotations

import importlib.util
import os
import re
from functools import cache, lru_cache

from harness.api.errors import SetupError
from harness.extensions.sandbox.clock import SECONDS, ClockedFunction, UnreadableTextError

from .mathematics import MAX_CHARS, math_canonical

_DIGITS = re.compile(r"\d{400}")


def math_equal(a: str, b: str, *, strict: bool = False, seconds: float = SECONDS) -> bool:
    r"""Whether two answers are equal. Symmetric; no text raises.

    Answers with the same normal form (`math_canonical`) are equal; with `strict`, only these. Otherwise the library
    `math-verify` decides whether they mean the same: `(x+1)^2` and `x^2+2x+1`, `1,2` and `2,1`, `30\%` and 0.3.

    The library interrupts itself by signals, which work only in the main thread and not within long arithmetic
    (`9^{9^9}`). So it runs in the process of `clock.py`, which the system ends when a comparison takes more than
    `seconds` of processor time; that pair is then unequal. Calls of several threads wait for one another, and a call
    waits for its comparison (usually milliseconds): do not call it on an event loop with hostile texts. Results are
    cached.

    Raises:
        SetupError: the extra `math` is not installed, it does not start, or the system has no processor-time limits
            (Windows).
    """
    if not strict:
        _check_setup()
    (one, text), (two, other) = sorted((math_canonical(text), text) for text in (a, b))
    if one == two:
        return bool(one)
    if strict or not one or max(len(one), len(two)) > MAX_CHARS or _DIGITS.search(f"{one} {two}"):
        return False
    return _verdict(_readings(one, text), _readings(two, other), seconds)


def _readings(canonical: str, text: str) -> tuple[str, ...]:
    """What an answer may mean: the normal form leaves out a percent sign, but 30% is 0.3 too."""
    return (canonical, f"{canonical}\\%") if "%" in text else (canonical,)


@cache
def _check_setup() -> None:
    if importlib.util.find_spec("math_verify") is None:
        raise SetupError(
            "comparing mathematical answers by meaning needs the package math-verify",
            hint='Install it: pip install "mas-eval-harness[math]"; or compare normal forms only (strict).',
        )
    if os.name != "posix":
        raise SetupError(
            f"comparing mathematical answers by meaning needs a POSIX system, this is {os.name}",
            hint="Compare normal forms only (strict).",
        )


_COMPARE = ClockedFunction("harness.extensions.datasets._math_verify:comparing")


@lru_cache(maxsize=100_000)
def _verdict(one: tuple[str, ...], two: tuple[str, ...], seconds: float) -> bool:
    try:
        return bool(_COMPARE(one, two, seconds=seconds))
    except UnreadableTextError:
        return False
