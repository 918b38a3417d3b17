"""Text in a reply that is not meant as part of it: thinking, comments, and what a chat template puts around it.

The tolerant forms read what `strip_reasoning` leaves of a text; other agents see what `without_thinking` leaves. Most
texts have
no mark of these: `thoughts`, `text_tool_calls` and `markup` are loaded for those that do.
"""

from __future__ import annotations

import re
from functools import lru_cache

from .call_marks import may_call
from .characters import has_any

_FENCED = re.compile(
    r"\s*+```(?:text|txt|plaintext|markdown|md|xml|html|yaml)?[ \t]*\n((?:[^`]|`(?!``))*+)```\s*+", re.IGNORECASE
)


_SIGNS = ("<", "THINK]", "◁", "analysis", "my thought process:", "my response:", "[|", "[e~[")
"""One of these is in every text with a mark."""


_PICTURES = re.compile(r"^([ \t]*#{1,6}[ \t]*)[\u2600-\u27bf\U0001f300-\U0001faff\ufe0f]{1,4}[ \t]*", re.MULTILINE)
"""What stands before the words of a heading: "## 🎯 Answer"."""
_LAYOUT = ("<", "\\textbf{", "--", "==", "__", "**")
"""One of these is in every text with layout that `markup.plain` takes out."""


@lru_cache(maxsize=8)
def strip_reasoning(text: str) -> str:
    """What a reply says: `without_thinking`, and each call of a tool that is written as text as a JSON object
    (`text_tool_calls`), which every form with labels reads, in plain lines (`markup`). Linear. Remembered: a reply is
    first read, then searched for fields of which nothing was read.
    """
    text = without_thinking(text)
    if not text.isascii() and "#" in text:
        text = _PICTURES.sub(r"\1", text)
    if may_call(text):
        from .text_tool_calls import as_objects

        text = as_objects(text)
    if has_any(text, _LAYOUT):
        from .markup import plain

        text = plain(text)
    return text


def without_thinking(text: str) -> str:
    """`text` without thinking: `<think>…</think>`, `[THINK]…[/THINK]` and every other dialect of `dialects`.

    A `<think>` that is never closed reaches to the end, and a `</think>` that was never opened begins at the start,
    unless they are in an object: there they are a part of what a field says. Comments (`<!-- … -->`) are left out
    too, and so are tokens of a chat template, with all that follows the end of the turn. What is in fences is text,
    unless all of the reply is in one; there a `</think>` that was never opened ends a line, since what a grammar has a
    model write between fences may say one within a line. Linear; a text without any is returned as it is.
    """
    if not has_any(text, _SIGNS):
        return text
    from .thoughts import without_thoughts

    text = without_thoughts(text)
    fence = _FENCED.fullmatch(text)
    if fence is not None and (inner := without_thoughts(fence[1], is_fenced=True)) != fence[1]:
        return f"{text[: fence.start(1)]}{inner}\n{text[fence.end(1) :]}"
    return text


def unfenced(text: str) -> str:
    """`text` without a fence around all of it that names no programming language."""
    match = _FENCED.fullmatch(text)
    return match[1] if match else text
