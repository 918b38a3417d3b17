"""Text in a reply that is not meant as part of it: thinking, and comments.

The tolerant forms read what `spoken` leaves of a text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from .literals import objects

NEVER_CLOSED = ("think", "thinking")
"""Elements that hold thinking even if a tag is missing: chat templates write the opening one, and replies are cut."""
THINKING = frozenset((
    *NEVER_CLOSED,
    *("thought", "thoughts", "reasoning", "reflection", "scratchpad", "analysis", "rationale", "inner_monologue"),
))  # fmt: skip
"""Names of elements that hold thinking."""
_NAMES = "|".join(sorted(THINKING, key=len, reverse=True))
_ANY = re.compile(rf"<[ ]?/?[ ]?(?:{_NAMES})(?![\w-])", re.IGNORECASE)
_PIECE = re.compile(
    rf"(?P<fence>```)|(?<!`)(?P<ticks>`{{1,2}})[^`\n]++(?P=ticks)(?!`)"
    rf"|<[ ]?(?P<close>/)?[ ]?(?P<name>{_NAMES})(?:\s[^<>]{{0,200}})?(?<!/)>",
    re.IGNORECASE,
)
_CLOSING = {name: re.compile(rf"<[ ]?/[ ]?{name}\s{{0,9}}>", re.IGNORECASE) for name in THINKING}
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
    """Finds where elements of thinking end in one text. All lookups together take linear time."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._unclosed: set[str] = set()

    def end(self, name: str, at: int) -> int | None:
        """Where the element ends that was opened before `at`; None if it is never closed, and so no thinking."""
        name = name.lower()
        closing = None if name in self._unclosed else _CLOSING[name].search(self._text, at)
        if closing is not None:
            return closing.end()
        self._unclosed.add(name)
        return len(self._text) if name in NEVER_CLOSED else None


def _within(spans: Sequence[tuple[int, int]], place: int) -> bool:
    """Whether a place is in one of these spans, which are in order."""
    at = bisect_right(spans, (place, len(spans))) - 1
    return at >= 0 and place < spans[at][1]


def spoken(text: str) -> str:
    """`text` without thinking: `<think>…</think>`, `<thinking>…</thinking>`, `<reasoning>…</reasoning>` and the like.

    A `<think>` that is never closed reaches to the end, and a `</think>` that was never opened begins at the start,
    unless they are in an object: there they are a part of what a field says. Comments (`<!-- … -->`) are left out
    too. What is in fences is text. Linear; a text without any is returned as it is.
    """
    if "<" not in text:
        return text
    if "<!--" in text and "-->" in text:
        text = _without_comments(text)
    if not _ANY.search(text):
        return text
    thinking, kept, at, start, fences = Thinking(text), list[str](), 0, 0, True
    fields = [(begin, end) for begin, end, _ in objects(text)] if "{" in text else []
    while piece := _PIECE.search(text, at):
        at = piece.end()
        if piece["fence"]:
            end = text.find("```", at) if fences else -1
            fences = end >= 0
            at = end + 3 if fences else at
        elif piece["close"]:
            if piece["name"].lower() in NEVER_CLOSED and not _within(fields, piece.start()):
                kept, start = [], at
        elif piece["name"] and (stop := thinking.end(piece["name"], at)) is not None:
            if stop == len(text) and _within(fields, piece.start()):
                continue
            kept.append(text[start : piece.start()])
            at = start = stop
    return "\n".join(filter(None, (*kept, text[start:])))


_FENCED = re.compile(
    r"\s*+```(?:text|txt|plaintext|markdown|md|xml|html|yaml)?[ \t]*\n((?:[^`]|`(?!``))*+)```\s*+", re.IGNORECASE
)


def unfenced(text: str) -> str:
    """`text` without a fence around all of it that names no programming language."""
    match = _FENCED.fullmatch(text)
    return match[1] if match else text
