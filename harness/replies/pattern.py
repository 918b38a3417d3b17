"""What a regular expression finds in a reply, as lm-eval's regex filter does."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from harness.api import Parsed, Reply

from ._text import valid

MAX_TEXT = 20_000
"""Characters at a reply's end that are searched: an expression may take more than linear time, and is the spec's."""


@dataclass(frozen=True, slots=True)
class Pattern(Reply):
    """The first match of an expression, or with `group_select: -1` the last one; of its groups the first that matched.

    Attributes:
        pattern: a regular expression.
        group_select: which of the matches, counted from 0, or from the end with negative numbers.
    """

    pattern: str
    group_select: int = 0

    def __post_init__(self) -> None:
        try:
            _compiled(self.pattern)
        except re.error as error:
            raise ValueError(f"pattern {self.pattern!r} is no regular expression: {error}") from None

    def parse(self, text: str) -> Parsed:
        """The text that matched."""
        found = list(_compiled(self.pattern).finditer(text[-MAX_TEXT:]))
        try:
            match = found[self.group_select]
        except IndexError:
            return Parsed(error=f"nothing in the reply matches {self.pattern}")
        groups = [group for group in match.groups() if group]
        answer = valid((groups or [match[0]])[0].strip())
        return Parsed(answer) if answer else Parsed(error=f"what matches {self.pattern} is empty")


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
