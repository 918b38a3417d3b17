"""Options within the question of a multiple-choice row: "… The options are: (A) one (B) two"."""

from __future__ import annotations

import re
from typing import Any

from harness.replies.literals import read

_LEAD = re.compile(r"[\s.]*\bThe options are:\s*", re.IGNORECASE)
_MARK = re.compile(r"(?:^|(?<=\s))\(([A-Z])\)\s")


def split_options(text: str) -> tuple[str, list[str]] | None:
    """Return the question and its options in order; None without options, or if not (A), (B), … each once, in order.

    >>> split_options("Which? The options are: (A) one (B) two.")
    ('Which?', ['one', 'two'])
    """
    leads = list(_LEAD.finditer(text))
    if not leads:
        return None
    lead = leads[-1]
    rest = text[lead.end() :]
    marks: list[re.Match[str]] = []
    for mark in _MARK.finditer(rest):
        if mark[1] == chr(ord("A") + len(marks)):  # an option may speak of (A) itself
            marks.append(mark)
    if len(marks) < 2 or marks[0].start():
        return None
    ends = [*(mark.start() for mark in marks[1:]), len(rest)]
    options = [rest[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)]
    options[-1] = options[-1].removesuffix(".")
    question = text[: lead.start()] + text[lead.start() : lead.end()].split("The")[0].rstrip()
    return question.strip(), options


def as_list(options: Any) -> list[str]:
    """Return options as a list; a text such as "['one', 'two']" is read. Raises `ValueError` for anything else."""
    value = read(options) if isinstance(options, str) else options
    if not isinstance(value, (list, tuple)) or not value:
        raise ValueError(f"no list of options: {options!r:.60}")
    return [str(option) for option in value]
