"""A member's reasoning without its answer and its confidence."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator

from harness.extensions.panels.panels import Opinion
from harness.replies import json_fields

Reader = Callable[[str], str | None]
"""Text → the candidate that the task's reply form reads from it, or None."""

MAX_LINES = 200
"""How many of a reply's last lines are searched for the answer, if the answer is disclosed anyway."""
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


def excerpt(opinion: Opinion, length: int, read: Reader, *, answer_disclosed: bool = False) -> str:
    """Return the first `length` characters that a member wrote before its answer, in one line.

    If the reply is a JSON object, that is its field `reasoning`. Lines that state a confidence are left out.

    Args:
        length: in characters.
        read: reads the answer from a text.
        answer_disclosed: whether the answer is disclosed anyway. If not, the text ends before the first line that
            announces an answer or from which `read` reads this one. If so, it ends before the last such line, so
            reasoning that mentions the answer early is not lost.
    """

    def contains_answer(text: str) -> bool:
        return opinion.candidate is not None and read(text) == opinion.candidate

    text, is_field = _reasoning(opinion.text)
    lines = _lines(text, opinion)
    if answer_disclosed:
        all_lines = list(lines)
        places = range(len(all_lines) - 1, max(-1, len(all_lines) - 1 - MAX_LINES), -1)
        cut = None if is_field else next((place for place in places if contains_answer(all_lines[place])), None)
        return in_a_line(" ".join(all_lines[:cut]), length)
    before = itertools.takewhile(lambda line: not _ANNOUNCED.search(line) and not contains_answer(line), lines)
    beginning = in_a_line(" ".join(_enough(before, length)), length)
    while beginning and contains_answer(beginning):  # an answer of several lines
        words = beginning.split()
        beginning = " ".join(words[: len(words) // 2])
    return beginning


def in_a_line(text: str, length: int) -> str:
    """Return the beginning of a text in one line of at most `length` characters."""
    # Only the needed part of a very long text is read. Collapsed blanks may make the result a little shorter.
    line = " ".join(text[: 20 * length + 1_000].split())
    return line if len(line) <= length else line[:length].rstrip() + " …"


def _reasoning(text: str) -> tuple[str, bool]:
    """Return (field `reasoning`, True) of a reply that is a JSON object; else (the reply, False)."""
    value = json_fields(text, ("reasoning", "answer", "confidence")).get("reasoning") if "{" in text else None
    if isinstance(value, list):
        value = "\n".join(item for item in value if isinstance(item, str))
    return (value, True) if isinstance(value, str) else (text, False)


def _lines(text: str, opinion: Opinion) -> Iterator[str]:
    """Yield the lines with text, up to an answer of several lines or one in a JSON object."""
    answer = opinion.answer if isinstance(opinion.answer, str) and "\n" in opinion.answer else ""
    own = {" ".join(line.split()) for line in answer.split("\n")}
    heading = False
    for raw_line in text.split("\n"):
        line = " ".join(raw_line.split())
        if not any(map(str.isalnum, line)) or line.startswith(("```", "~~~")):
            continue
        if line in own or _FIELD.search(line):
            return
        # Leave out "Confidence: high", "I am 90% confident", and a number alone in the line below "Confidence:".
        digits = any(map(str.isdigit, line))
        sure = _HEADING.match(line) is not None or (digits and _SURE.search(line) is not None)
        if not sure and not (heading and _NUMBER_ALONE.fullmatch(line)):
            yield line
        heading = sure and not digits


def _enough(lines: Iterator[str], length: int) -> Iterator[str]:
    """Yield lines until they have more than `length` characters together."""
    size = 0
    for line in lines:
        yield line
        size += len(line) + 1
        if size > length + 1:
            return
