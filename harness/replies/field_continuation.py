"""What a field says that does not stand on its label's line: below it, in a fence, or on further lines."""

from __future__ import annotations

import re

from .characters import BLANK, WRAPPING, end_of
from .fields import Statement, line_end, next_field
from .members import text_in

_LINES = 20
"""Lines of a field below its heading."""
_NEXT_LINE = re.compile(f"^(?:{next_field().pattern})", re.MULTILINE | re.IGNORECASE)
_FENCE = re.compile(r"[ \t*_]*+`{3,}\w*+[ \t]*+$")
_CLOSING = re.compile(r"^[ \t]*+`{3,}[ \t]*+$", re.MULTILINE)


def lines_end(lines: str, end: int, others: tuple[str, ...]) -> int:
    """Where the lines of a field end whose first one ends at `end`: before the next field, if one follows."""
    following = re.compile(f"^(?:{next_field(others).pattern})", re.MULTILINE | re.IGNORECASE).search(lines, end)
    if following is None or lines.count("\n", end, following.start()) > _LINES:
        return end
    return max(end, len(lines[: following.start()].rstrip(" \t\n>*_`-")))


def statement_below(text: str, lines: str, at: int, others: tuple[str, ...] = ()) -> Statement | None:
    """What is below a line that ends behind `at`: what a fence encloses, else the next line, or all lines up to
    that of another field."""
    if (fence := fenced_block(lines, at)) is not None:
        return _fenced(text, lines, *fence)
    start = end_of(BLANK, text, line_end(lines, at))
    if text[start : start + 1] == "{" and lines[start : start + 1] == " ":  # an object, which may be the field's text
        end = line_end(text, end_of(BLANK, lines, start) - 1)
        if text_in(text[start:end]) is not None:
            return Statement(text[start:end], start, end)
    start = end_of(BLANK, lines, line_end(lines, at))
    following = next_field(others)
    if start >= len(lines) or following.match(lines, start, line_end(lines, start)):
        return None
    first = end = line_end(lines, start)
    for _ in range(_LINES):
        begin = end + 1
        stop = line_end(lines, begin) if begin < len(lines) else begin
        if begin >= len(lines) or _FENCE.match(lines, begin, stop):
            break
        if following.match(lines, begin, stop):
            return Statement(text[start:end], start, end)
        end = stop
    return Statement(text[start:first], start, first) if text[start:first].strip(WRAPPING) else None


def fenced_block(lines: str, at: int) -> tuple[int, int, int] | None:
    """The fence that opens behind `at` on its line, or on the next one that is not empty, as (where it starts, where
    what it encloses does, where that ends); one that opens behind `at` must be closed."""
    end = line_end(lines, at)
    inline = _FENCE.match(lines, at, end) is not None
    start = at if inline else end_of(BLANK, lines, end)
    opened = line_end(lines, start)
    if not inline and not _FENCE.match(lines, start, opened):
        return None
    closing = _CLOSING.search(lines, opened + 1)
    if closing is None and inline:
        return None
    return start, min(opened + 1, len(lines)), closing.start() if closing else len(lines)


def _fenced(text: str, lines: str, start: int, begin: int, stop: int) -> Statement | None:
    """What a fence encloses: all of it where another field follows after it, else what precedes another field."""
    end = line_end(lines, stop)
    if not _NEXT_LINE.search(lines, end):
        following = _NEXT_LINE.search(lines, begin, stop)
        if following is not None:
            end = stop = following.start()
        elif stop == len(lines):  # never closed
            begin = end_of(BLANK, lines, begin)
            end = stop = line_end(lines, begin)
        if not lines[begin:stop].strip(WRAPPING) and text_in(text[begin:stop]) is None:
            return None  # an object in which another field stands
    return Statement(text[begin:stop], start, end) if text[begin:stop].strip(WRAPPING) else None
