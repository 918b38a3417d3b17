"""Regular expressions that a spec brings along: other people's patterns, on text that a model wrote.

Some expressions take exponential time on some texts, such as `(a+)+$` on `aaaa…b`. Python's `re` cannot be stopped; the
package `regex` reads the same expressions and can.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

SECONDS = 1.0
"""What one expression may take on one text. Those that end take thousandths of it."""
MAX_PATTERN = 10_000
MAX_RESULT = 10_000_000


class RegularExpression:
    """A compiled expression whose work is bounded.

    Args:
        pattern: as `re` reads it.

    Raises:
        ValueError: if it is not a regular expression, or longer than `MAX_PATTERN` characters.
    """

    def __init__(self, pattern: str) -> None:
        import regex

        if len(pattern) > MAX_PATTERN:
            raise ValueError(f"a regular expression of {len(pattern):,} characters; at most {MAX_PATTERN:,}")
        self.pattern = pattern
        try:
            self._compiled: Any = regex.compile(pattern)
        except (regex.error, RecursionError, MemoryError, OverflowError) as error:
            raise ValueError(f"{pattern!r:.200} is not a regular expression: {error}") from None

    def matches(self, text: str) -> list[Any]:
        """All matches, in order. Raises `TimeoutError` after `SECONDS`."""
        return list(self._compiled.finditer(text, timeout=SECONDS))

    def substituted(self, text: str, replacement: str, count: int = 0) -> str:
        """The text with matches replaced, as `re.sub` does.

        Raises:
            TimeoutError: after `SECONDS`.
            ValueError: if it grows beyond `MAX_RESULT` characters, or the replacement names a group there is not.
        """
        import regex

        length = len(text)

        def expanded(match: Any) -> str:
            nonlocal length
            piece: str = match.expand(replacement)
            length += len(piece)
            if length > MAX_RESULT:
                raise ValueError(f"the replacement makes a text of more than {MAX_RESULT:,} characters")
            return piece

        try:
            result: str = self._compiled.sub(expanded, text, count=count, timeout=SECONDS)
        except (IndexError, regex.error) as error:
            raise ValueError(f"the replacement {replacement!r:.100}: {error}") from None
        return result


@lru_cache(maxsize=256)
def regular_expression(pattern: str) -> RegularExpression:
    """The compiled expression, once for each pattern. Raises `ValueError`."""
    return RegularExpression(pattern)
