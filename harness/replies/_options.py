"""The rule that all forms with options share: a single unambiguous option is read, in whatever frame it is said."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from ._statements import last_line
from .fields import json_fields

T = TypeVar("T")

KEYS = ("answer", "final_answer", "preferred_answer", "action", "choice", "option", "label", "decision")
_TAIL = 20_000
"""Characters at a reply's end that are searched."""
_NAMED = r"(?:(?:the|my|our|final|correct|best|chosen)[ \t*_]+){0,4}(?:answer|action|choice|option|label|decision)"
_TAG = re.compile(r"<(final_answer|answer|action|choice|option|label|decision)>\s*+([^<>]{1,300})</\1>", re.IGNORECASE)
_SAID = re.compile(
    rf"^[ \t>#*_`-]{{0,12}}{_NAMED}[ \t*_`#]{{0,8}}"
    r"(?:[:：=–—-]{1,2}>?[ \t*_`]*+|[ \t]*+\n\s*+|(?<=#)[ \t]*+)([^\n]{1,300})$",
    re.IGNORECASE | re.MULTILINE,
)
_JOINED = re.compile(r"[\s*_`\"'”’)\]]{0,6}(?:\bor\b|\band\b|[/|&])[\s*_`\"'“‘(\[]{0,6}(?:option\s+)?", re.IGNORECASE)


def plain_option(text: str, exactly: Callable[[str], T | None]) -> T | None:
    """The option that a reply gives in one of these frames, the first of them that has one; in each the last counts.

    1. a JSON object: `{"action": "WAIT"}`;
    2. an element: `<answer>B</answer>`;
    3. a line that announces it, or the heading above it: `ACTION - WAIT`, `### Action` and on the next line `WAIT`;
    4. the last line, if it is exactly an option.

    Args:
        text: the reply.
        exactly: the option that a text is and nothing besides, but for marks around it; None if it is none.
    """
    text = text[-_TAIL:]
    if "{" in text:
        values = [v for v in json_fields(text, KEYS).values() if isinstance(v, (str, int)) and not isinstance(v, bool)]
        found = {option for value in values if (option := exactly(str(value))) is not None}
        if len(found) == 1:
            return found.pop()
    for frame in (_TAG, _SAID):
        for match in reversed(list(frame.finditer(text))):
            if (option := exactly(match[frame.groups].strip())) is not None:
                return option
    line = last_line(text)
    return exactly(line) if len(line) <= 300 else None


def another_follows(text: str, end: int, option: re.Pattern[str]) -> bool:
    """Whether what ends at `end` is one of several that are offered: "GRAB_LEFT or WAIT", "Yes/No"."""
    joined = _JOINED.match(text, end)
    return joined is not None and option.match(text, joined.end()) is not None
