"""Options that a text names alone: neither denied nor one of several."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_DENIED_BEFORE = re.compile(
    r"(?:\b(?:not|never|neither|nor|except|eliminate|exclude|reject|considered|tried|than)|n['’]t)"
    r"(?:[\W_]|\b(?:be|an?|the|really|option|choice)\b)*$",
    re.IGNORECASE,
)
_DENIED_BEHIND = re.compile(
    r"[)\]*_ \t]{0,4}(?:is|are|was|were|seems?|(?:can|must|should)[ \t]be)[ \t]+"
    r"(?:not|wrong|incorrect|false|never|im\w+|ruled[ \t]out|eliminated|excluded|discarded|rejected)\b",
    re.IGNORECASE,
)


def singles(pattern: re.Pattern[str], text: str, is_listed: Callable[[str, int], bool]) -> Iterator[re.Match[str]]:
    """The matches that are neither denied ("not (B)", "(B) is wrong") nor part of an enumeration.

    Args:
        pattern: matches an option.
        text: where options are.
        is_listed: whether another option follows what ends at this place.
    """
    listed = False
    for match in pattern.finditer(text):
        start, end = match.span()
        after_another, listed = listed, is_listed(text, end)
        denied = _DENIED_BEFORE.search(text[max(start - 30, 0) : start]) or _DENIED_BEHIND.match(text[end : end + 40])
        if not (after_another or listed or denied):
            yield match
