"""The rule that all forms with options share: a single unambiguous option is read, in whatever frame it is said."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from ._statements import last_line
from ._text import end_of
from .fields import json_fields

T = TypeVar("T")

KEYS = ("answer", "final_answer", "preferred_answer", "action", "choice", "option", "label", "decision")
_TAIL = 20_000
"""Characters at a reply's end that are searched."""
_NAMED = r"(?:(?:the|my|our|final|correct|best|chosen)[ \t*_]+){0,4}(?:answer|action|choice|option|label|decision)"
_TAG = re.compile(
    r"<(final_answer|answer|action|choice|option|label|decision)>\s*+([^<>]{1,300})</\1>"
    r"|\[(final_answer|answer|action)\][ \t]*+([^\[\]\n]{1,300})",
    re.IGNORECASE,
)
_BOX = re.compile(r"\\boxed[ \t]*\{(?:\\text\w{0,2}\{)?([^{}]{1,300})\}")
_SAID = re.compile(
    r"(?:^[ \t>#*_`-]{0,12}|(?<=[.!?:;,][ ]))(?:(?:so|thus|therefore|hence|then|and)[ \t,]+){0,2}"
    rf"(?:{_NAMED}[ \t*_`#]{{0,8}}"
    r"(?:[:：=|–—-]{1,2}>?|[ \t]*+\n\s*+|(?<=#)|\b(?:is|must[ ]be|should[ ]be)\b[ \t]*:?(?:[ \t]*[a-z]{2,12}ly\b)?)"
    r"|I[ ](?:choose|pick|select|will[ ]go[ ]with|go[ ]with)\b:?)[ \t*_`]*+([^\n]{1,300})$",
    re.IGNORECASE | re.MULTILINE,
)
_LEAD = re.compile(r"(?:so|thus|therefore|hence)\b[ \t]*[,:]?[ \t]*", re.IGNORECASE)
_JOINED = re.compile(
    r"[\s*_`\"'”’()\]}$]{0,6}(?:,?[ \t]*\b(?:or|and|as well as)\b|[/|&]|(?P<weak>[,;+–-]))[\s,*_`\"'“‘(\[]{0,6}"
    r"(?:(?:or|and|else|maybe|perhaps|possibly|also|both|either|option|choice)\b[\s,*_`\"'“‘(\[]{0,6}){0,3}",
    re.IGNORECASE,
)
_ENDS = re.compile(r"[\s*_`\"'”’)\]]{0,6}(?:[.,;:!?|/+]|\Z)|[ \t]*\n")


def plain_option(
    text: str, exactly: Callable[[str], T | None], announced: Callable[[str], T | None] | None = None
) -> T | None:
    r"""The option that a reply gives in one of these frames, the first of them that has one; in each the last counts.

    1. a JSON object: `{"action": "WAIT"}`;
    2. an element or a box: `<answer>B</answer>`, `[ANSWER] B`, `\boxed{B}`;
    3. what announces it on its line, or the heading above it: `ACTION - WAIT`, `My answer is WAIT.`, `### Action` and
       on the next line `WAIT`;
    4. the last line, if it is exactly an option, and the line above it is not another one.

    Args:
        text: the reply.
        exactly: the option that a text is and nothing besides, but for marks around it; None if it is none.
        announced: the same for a text in the frames 1 to 3, where more may be read; None for `exactly`.
    """
    announced, text = announced or exactly, text[-_TAIL:]
    if "{" in text:
        values = [v for v in json_fields(text, KEYS).values() if isinstance(v, (str, int)) and not isinstance(v, bool)]
        options = {option for value in values if (option := announced(str(value))) is not None}
        if len(options) == 1:
            return options.pop()
    for frame in (_TAG, _BOX, _SAID):
        for match in reversed(list(frame.finditer(text))):
            if (option := announced(match[match.lastindex or 0].strip())) is not None:
                return option
    line = last_line(text)
    bare = line[end_of(_LEAD, line, 0) :]
    option = exactly(bare) if len(bare) <= 300 else None
    above = last_line(text[: text.rindex(line)]) if option is not None else ""
    return None if exactly(above) not in (None, option) else option


def another_follows(text: str, end: int, option: re.Pattern[str], *, weak: bool = True) -> bool:
    """Whether what ends at `end` is one of several that are offered: "GRAB_LEFT or WAIT", "Yes/No".

    Args:
        text: where it stands.
        end: where it ends.
        option: what finds another one.
        weak: whether one behind a comma or the like must end there: "Yes, no doubt" offers one, "Yes, no" two.
    """
    joined = _JOINED.match(text, end)
    other = option.match(text, joined.end()) if joined else None
    return bool(joined and other and not (weak and joined["weak"] and not _ENDS.match(text, other.end())))
