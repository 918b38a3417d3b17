"""The match of a regular expression in a reply, as in lm-eval's regex filter."""

from __future__ import annotations

from dataclasses import dataclass

from harness.api import Parsed, Reply
from harness.replies.characters import valid

from .regular_expression import SECONDS, regular_expression

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
            regular_expression(self.pattern)
        except ValueError as error:
            raise ValueError(f"pattern {error}") from None

    def parse(self, text: str) -> Parsed:
        """The text that matched."""
        try:
            matches = regular_expression(self.pattern).matches(text[-MAX_TEXT:])
        except TimeoutError:
            return Parsed(error=f"the expression {self.pattern} takes more than {SECONDS:g} s on the reply")
        try:
            match = matches[self.group_select]
        except IndexError:
            return Parsed(error=f"nothing in the reply matches {self.pattern}")
        groups = [group for group in match.groups() if group]
        answer = valid((groups or [match[0]])[0].strip())
        return Parsed(answer) if answer else Parsed(error=f"what matches {self.pattern} is empty")
