"""A number as an answer: `#### 1,234`, "the answer is $12.50", `7/8`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from harness.api import Action, Parsed, Reply, ReplyField, as_text
from harness.extensions.panels.statements import LABEL, LABEL_WORDS, MAX_LABELS, WINDOW, boxes, last_labels
from harness.replies.aside import spoken
from harness.replies.characters import last_line
from harness.replies.extract import ANSWER, stated

_LEAD = "The answer is"
LINE = f"{_LEAD} <number>."
"""The line that prompts ask for; a copy of it is no number."""
_LARGEST = 10**300
"""A number beyond it is none: every one can be compared with floats."""
_HASHES = re.compile(r"(?<!#)#{3,}+(?=[ \t]*[-+$£€¥\d.])")
_DIGITS = r"(?:\d{1,3}(?:(?:,|\{,\}|\\,|\u202f|\u2009)\d{3})+(?![\d,]\d)|\d{1,400}+(?!\d))(?:\.\d{1,400})?+|\.\d{1,400}"
_NUMBER = re.compile(
    rf"(?<![\w.^\\])(?P<sign>[-+−–]?)[ \t]?(?:\\?[$£€¥][ \t]?)?(?P<inner>[-−]?)"
    rf"(?:\\[dt]?frac[ \t]?\{{[ \t]?(?P<over>\d{{1,40}})[ \t]?\}}[ \t]?\{{[ \t]?(?P<under>\d{{1,40}})[ \t]?\}}"
    rf"|(?P<digits>{_DIGITS})(?P<power>[eE][-+]?\d{{1,3}}(?!\w))?(?:[ \t]?/[ \t]?(?P<by>\d{{1,40}})(?![\d.]))?)"
    r"(?P<percent>[ \t]?(?:\\?%|percent\b))?"
)


@dataclass(frozen=True, slots=True)
class Number(Reply):
    r"""A number.

    The action is a JSON number: an integer if it is whole (1e3 and 12.0 are), otherwise the nearest float, so equal
    answers are equal values (1/2 and 0.50) and graders can set a tolerance.

    A sign, thousands separators, a decimal point, an exponent, a fraction a/b or \frac{a}{b}, and a currency sign (left
    out) are read. The rules, in order; the last statement counts:

    1. after "####", in a box, after "the answer is" or "Answer:": the first number of the line, or the first after its
    last
       equals sign;
    2. the last number of the last line.

    Attributes:
        percent: the meaning of a percent sign. False: none, 12% is 12, for questions that ask for percent. True: a
            hundredth, 12% is 0.12, and 12 without a sign stays 12.
    """

    percent: bool = False

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The number."""
        return (ReplyField("answer", _LEAD, {"type": "number"}),)

    def written(self, action: Action) -> str:
        """As the prompt asks for it."""
        return f"{_LEAD} {as_text(action)}."

    @property
    def examples(self) -> tuple[Action, ...]:
        """Numbers of several kinds."""
        return (42, 7, -3, 1234, 0.5, 12.75)

    def parse(self, text: str) -> Parsed:
        """The number that `text` states."""
        text = spoken(text)
        value = stated(text, ANSWER, self._whole)
        if value is not None:
            return Parsed(value)
        for statement in _statements(text):
            value = self._first(statement.rpartition("=")[2])
            value = self._first(statement) if value is None else value
            if value is not None:
                return Parsed(value)
        line = last_line(text)  # from a position, not cut: the end of a long number is not a number
        values = [self._value(match) for match in _NUMBER.finditer(line, max(0, len(line) - WINDOW))]
        value = next((value for value in reversed(values) if value is not None), None)
        if value is not None:
            return Parsed(value)
        return Parsed(error=f"no number was found; end with a line such as '{LINE}'")

    def well_formed(self, text: str) -> bool:
        """Whether a statement, a box or hashes give it."""
        return any(self._first(statement) is not None for statement in _statements(spoken(text)))

    def constraint(self) -> Mapping[str, Any]:
        """Any work, then "The answer is" and a number at the end."""
        return {"regex": rf"(.|\n)*{_LEAD} -?[0-9]{{1,18}}(\.[0-9]{{1,12}})?%?\."}

    def _whole(self, text: str) -> int | float | None:
        """The number that a field says, which has no other."""
        values = [self._value(match) for match in itertools.islice(_NUMBER.finditer(text[:WINDOW]), 2)]
        return values[0] if len(values) == 1 else self._first(text.rpartition("=")[2]) if "=" in text else None

    def _first(self, text: str) -> int | float | None:
        match = _NUMBER.search(text)
        return self._value(match) if match else None

    def _value(self, match: re.Match[str]) -> int | float | None:
        digits = re.sub(r",|\{,\}|\\,|[\u202f\u2009]", "", match["over"] or match["digits"])
        divisor = int(match["under"] or match["by"] or 1)
        if not divisor:
            return None
        sign = -1 if match["sign"] in ("-", "−", "–") or match["inner"] else 1
        whole, _, part = digits.partition(".")
        plain = divisor == 1 and not match["power"] and not match["percent"] and digits.isascii() and whole.isdigit()
        if plain and int(whole) < _LARGEST:  # as most answers are; fractions are slow
            return sign * (float(digits) if part.strip("0") else int(whole))
        value = sign * Fraction(digits) * Fraction(10) ** int((match["power"] or "e0")[1:]) / divisor
        if self.percent and match["percent"]:
            value /= 100
        if abs(value) > _LARGEST:
            return None
        return value.numerator if value.denominator == 1 else float(value)


@lru_cache(maxsize=1)  # `parse` and `well_formed` read the same text, one after the other
def _statements(text: str) -> tuple[str, ...]:
    """What follows labels, hashes, and in boxes, from the last to the first."""
    statements = [
        (m.start(), text[m.end() : m.end() + WINDOW])
        for lead, words in ((LABEL, LABEL_WORDS), (_HASHES, ("###",)))
        for m in last_labels(text, lead, words)
    ]
    statements += [(start, content[:WINDOW]) for start, content in boxes(text)[-MAX_LABELS:]]
    return tuple(one.lstrip(" \t\r\n*_`#").split("\n", 1)[0] for _, one in sorted(statements, reverse=True))
