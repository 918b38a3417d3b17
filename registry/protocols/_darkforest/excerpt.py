"""A member's reasoning without what came of it: neither its answer nor how sure it is of it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator

from harness.authoring.panels import Opinion
from harness.replies import json_fields

Reader = Callable[[str], str | None]
"""Text → the candidate that the task's own reply form reads from it, or None."""

MAX_LINES = 200
"""Lines at a reply's end among which the one with the answer is looked for, where the answer is told anyway."""
_ANNOUNCED = re.compile(
    r"\bfinal[ _]answer\b|\banswer[ *_`]*(?:is|[:：=])|^\W*(?:answer|program|result)\W*[:：=]", re.IGNORECASE
)
_FIELD = re.compile(
    r"""["'“‘`](?:final_|preferred_)?(?:answer|completion|code|solution|program|label)["'”’`][ \t]*[:：]""",
    re.IGNORECASE,
)
"""A key of a JSON object whose value is an answer in some reply form."""
_HEADING = re.compile(r"[\W_]*(?:confidence|certainty)(?:[ _]level)?[\W_]*(?:[:=]|\Z)", re.IGNORECASE)
_SURE = re.compile(r"confiden(?:ce|t)|certainty", re.IGNORECASE)
_NUMBER_ALONE = re.compile(r"\W*\d[\d.,/ ]*(?:%|percent)?\W*")


def excerpt(opinion: Opinion, length: int, read: Reader, *, told: bool = False) -> str:
    """What a member wrote before its answer, in one line, its first `length` characters.

    Of a reply that is a JSON object it is the field `reasoning`. Lines that say how sure the member is are left out.

    Args:
        read: how the answer was found in the reply.
        told: whether the answer is disclosed besides. If not, the text ends before the first line that announces an
            answer or from which `read` has this one; if so, before the last from which it has, so that reasoning that
            mentions the answer early is not lost.
    """

    def tells(text: str) -> bool:
        return opinion.candidate is not None and read(text) == opinion.candidate

    text, is_field = _reasoning(opinion.text)
    lines = _lines(text, opinion)
    if told:
        kept = list(lines)
        places = range(len(kept) - 1, max(-1, len(kept) - 1 - MAX_LINES), -1)
        cut = None if is_field else next((place for place in places if tells(kept[place])), None)
        return in_a_line(" ".join(kept[:cut]), length)
    before = itertools.takewhile(lambda line: not _ANNOUNCED.search(line) and not tells(line), lines)
    shown = in_a_line(" ".join(_enough(before, length)), length)
    while shown and tells(shown):  # an answer of several lines
        words = shown.split()
        shown = " ".join(words[: len(words) // 2])
    return shown


def in_a_line(text: str, length: int) -> str:
    """The beginning of a text in one line."""
    # Of a very long text only what can be needed is looked at; blanks that are collapsed may make it a little shorter.
    line = " ".join(text[: 20 * length + 1_000].split())
    return line if len(line) <= length else line[:length].rstrip() + " …"


def _reasoning(text: str) -> tuple[str, bool]:
    """The field `reasoning` of a reply that is a JSON object, and whether it is that; else the reply itself."""
    found = json_fields(text, ("reasoning", "answer", "confidence")).get("reasoning") if "{" in text else None
    if isinstance(found, list):
        found = "\n".join(item for item in found if isinstance(item, str))
    return (found, True) if isinstance(found, str) else (text, False)


def _lines(text: str, opinion: Opinion) -> Iterator[str]:
    """The lines that say something, up to an answer of several lines or one in a JSON object."""
    answer = opinion.answer if isinstance(opinion.answer, str) and "\n" in opinion.answer else ""
    own = {" ".join(line.split()) for line in answer.split("\n")}
    heading = False
    for written in text.split("\n"):
        line = " ".join(written.split())
        if not any(map(str.isalnum, line)) or line.startswith(("```", "~~~")):
            continue
        if line in own or _FIELD.search(line):
            return
        # "Confidence: high", "I am 90% confident", and a number that stands by itself below "Confidence:".
        digits = any(map(str.isdigit, line))
        sure = _HEADING.match(line) is not None or (digits and _SURE.search(line) is not None)
        if not sure and not (heading and _NUMBER_ALONE.fullmatch(line)):
            yield line
        heading = sure and not digits


def _enough(lines: Iterator[str], length: int) -> Iterator[str]:
    """As many lines as have a character more than `length`."""
    size = 0
    for line in lines:
        yield line
        size += len(line) + 1
        if size > length + 1:
            return
