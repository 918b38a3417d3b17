"""Where thinking, comments and the marks of a chat template are in a text that has any, as `strip_reasoning` finds."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from .dialects import BEGINNING, ELEMENTS, END, ENDS, FRAME, NEVER_CLOSED, THOUGHTS, of_channels
from .literals import objects

THINKING = frozenset(ELEMENTS)
"""Names of elements that hold thinking."""
_NAMES = "|".join(sorted(THINKING, key=len, reverse=True))
OPENINGS = {marks.opening: marks.closing for marks in THOUGHTS}
"""Marks that begin thinking and are no elements → those that end it."""
CLOSINGS = frozenset(marks.closing for marks in THOUGHTS)
MARKS = "|".join(re.escape(mark) for marks in THOUGHTS for mark in marks[:2])
"""A pattern for any of both."""
FIRST_SIGNS = "".join(re.escape(sign) for sign in sorted({"<", *(m[0] for m in (*OPENINGS, *CLOSINGS, *ENDS))}))
"""With one of these begins a mark of thinking, an end of a turn, and each tag."""
_PIECE = re.compile(
    rf"(?P<fence>```)|(?<!`)(?P<ticks>`{{1,2}})[^`\n]++(?P=ticks)(?!`)"
    rf"|(?i:<[ ]?(?P<close>/)?[ ]?(?P<name>{_NAMES})(?:\s[^<>]{{0,200}})?(?<!/)>)|(?P<mark>{MARKS})"
)
_ELEMENT = re.compile(rf"<[ ]?/?[ ]?(?:{_NAMES})(?![\w-])", re.IGNORECASE)
_MARK = re.compile(MARKS)  # apart: a pattern of both would be tried at every character
_CLOSING = {
    **{name: re.compile(rf"<[ ]?/[ ]?{name}\s{{0,9}}>", re.IGNORECASE) for name in THINKING},
    **{opening: re.compile(re.escape(closing)) for opening, closing in OPENINGS.items()},
}
_COMMENTS = re.compile(r"```(?:[^`]|`(?!``))*+(?:```|\Z)|(?P<comment><!--(?:[^-]|-(?!->))*+-->)")


def _without_comments(text: str) -> str:
    """`text` without comments (`<!-- … -->`) that begin outside of fences."""
    kept, at = list[str](), 0
    for match in _COMMENTS.finditer(text):
        if match["comment"]:
            kept.append(text[at : match.start()])
            at = match.end()
    return "".join([*kept, text[at:]])


class Thinking:
    """Finds where thinking ends in one text. All lookups together take linear time."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._unclosed: set[str] = set()

    def end(self, name: str, at: int) -> int | None:
        """Where the thinking ends that was opened before `at`; None if it is never closed, and so is none.

        `name` is that of an element, or a mark of `OPENINGS`.
        """
        name = name if name in OPENINGS else name.lower()
        closing = None if name in self._unclosed else _CLOSING[name].search(self._text, at)
        if closing is not None:
            return closing.end()
        self._unclosed.add(name)
        return len(self._text) if name in NEVER_CLOSED or name in OPENINGS else None


def _within(spans: Sequence[tuple[int, int]], place: int) -> bool:
    """Whether a place is in one of these spans, which are in order."""
    at = bisect_right(spans, (place, len(spans))) - 1
    return at >= 0 and place < spans[at][1]


def without_thoughts(text: str, *, is_fenced: bool = False) -> str:
    """`text` without thinking, comments outside of fences, and what a chat template writes around it. Linear.

    `is_fenced`: a fence is around all of it, so that a closing mark alone counts only at the end of a line.
    """
    text = of_channels(text)
    if "<!--" in text and "-->" in text:
        text = _without_comments(text)
    text = _without_thoughts(text, is_fenced) if _ELEMENT.search(text) or _MARK.search(text) else text
    return _without_template(text) if "<" in text or "[" in text else text


def _without_thoughts(text: str, is_fenced: bool) -> str:
    thinking, kept, at, start, fences = Thinking(text), list[str](), 0, 0, True
    fields = [(begin, end) for begin, end, _ in objects(text)] if "{" in text else []
    after: dict[str, int] = {}  # name → how many parts were kept before its last element
    while piece := _PIECE.search(text, at):
        at, name = piece.end(), piece["mark"] or (piece["name"] or "").lower()
        if piece["fence"]:
            end = text.find("```", at) if fences else -1
            fences = end >= 0
            at = end + 3 if fences else at
        elif piece["close"] or name in CLOSINGS:
            if name in after and name not in NEVER_CLOSED:  # of an element within one of the same name
                del kept[after[name] :]
                start = at
            elif (name in CLOSINGS or name in NEVER_CLOSED) and not _within(fields, piece.start()):
                is_text = is_fenced and not (text[at : at + 1] or " ").isspace()
                kept, start = (kept, start) if is_text else ([], at)
        elif name and (stop := thinking.end(name, at)) is not None:
            if stop == len(text) and _within(fields, piece.start()):
                continue
            kept.append(text[start : piece.start()])
            after[name] = len(kept)
            at = start = stop
    return "\n".join(filter(None, (*kept, text[start:])))


def _without_template(text: str) -> str:
    """`text` without what a chat template writes around it, and without what follows the end of the turn."""
    bare = text.strip()
    if bare.startswith("<s>") and bare.endswith("</s>") and bare.count("s>") == 2:
        text = bare[3:-4]
    if beginning := BEGINNING.match(text):
        text = text[beginning.end() :]
    if END.search(text):
        fields = [(begin, end) for begin, end, _ in objects(text)] if "{" in text else []
        ends = (match.start() for match in END.finditer(text) if not _within(fields, match.start()))
        text = text[: next(ends, len(text))]
    if "</s>" in text and "<s>" not in text:
        text = text.replace("</s>", "")
    return FRAME.sub("", text)
