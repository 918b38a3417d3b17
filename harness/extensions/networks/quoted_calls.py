"""What a text only mentions: calls in code or quotes within a sentence, on quoted lines, in comments."""

from __future__ import annotations

import re
from bisect import bisect_right

_SPAN = re.compile(r"(?<!`)(`{1,2})[^`\n]++\1(?!`)")
_COMMENT = re.compile(r"<!--(?:[^-]|-(?!->))*+-->")
_QUOTES = {"`": "`", '"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“"}
_AROUND = 300
"""Characters beside a mention that are looked at."""
_BEGINS = re.compile(r"[ \t]*(?:(?:[-*+•]|\d{1,3}[.)])[ \t]+)?[\s*_`\"'“‘«„]*")
_ENDS = re.compile(r"[\s*_`\"'”’»“.,;]*")
_QUOTED_LINE = re.compile(r"[^\S\n]*>")
_QUOTED_BELOW = re.compile(r"\n[^\S\n]*>")  # fast, as it begins with a letter
_MEMBER = re.compile(r"[\"']\w{1,40}[\"'][ \t]*:[ \t]*\[?[ \t]*[\"']$")
"""The key of a JSON object before a quote: what is there is a value, not a quotation."""


class Mentions:
    """The places of one text that only mention something: code or quotes in a sentence, quoted lines, comments."""

    def __init__(self, text: str) -> None:
        self._text = text
        found = [match.span() for match in _SPAN.finditer(text)] if "`" in text else []
        if (last := text.rfind("-->")) >= 0:
            found += [match.span() for match in _COMMENT.finditer(text, 0, last + 3)]
        self._spans = list[tuple[int, int]]()
        for span in sorted(found):
            if not self._spans or span[0] >= self._spans[-1][1]:
                self._spans.append(span)
        self._starts = [start for start, _ in self._spans]
        self._quotes_lines = bool(_QUOTED_LINE.match(text) or _QUOTED_BELOW.search(text))

    def end(self, start: int, end: int) -> int | None:
        """Where the mention ends in which the text from `start` to `end` stands; None if it is meant.

        What is alone on its line but for marks around it is meant: `<wait/>` in backticks there is a call.
        """
        text = self._text
        at = bisect_right(self._starts, start) - 1
        span = self._spans[at] if at >= 0 and start < self._spans[at][1] else None
        if span is not None and text.startswith("<!--", span[0]):
            return span[1]
        if span is None and not self._quotes_lines and text[start - 1 : start] not in _QUOTES:  # most calls
            return None
        first, last = span if span is not None and end <= span[1] else (start, end)
        before = text[max(0, first - _AROUND) : first]
        line, after = before.rpartition("\n")[2], text[last : last + _AROUND].partition("\n")[0]
        if line.lstrip().startswith(">") and (len(line) < len(before) or len(before) < _AROUND):
            return last
        whole = len(line) < _AROUND and len(after) < _AROUND
        if whole and _BEGINS.fullmatch(line) and _ENDS.fullmatch(after):
            return None
        if span is not None:
            return max(span[1], end)
        quoted = _QUOTES.get(before[-1:], "\n") == after[:1] and not _MEMBER.search(line)
        return end if quoted else None
