"""A number as an answer: `#### 1,234`, "the answer is $12.50", `7/8`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.api import Action, Parsed, Reply, ReplyField, as_text
from harness.replies.answers import answer_of, places_of
from harness.replies.numbers import Numbers
from harness.replies.strip_reasoning import strip_reasoning

_LEAD = "The answer is"
LINE = f"{_LEAD} <number>."
"""The line that prompts ask for; a copy of it is no number."""
_HASHES = re.compile(r"(?<!#)#{3,}+(?=[ \t]*[-+$£€¥\d.])")
_HASH_LABEL = ((_HASHES, ("###",)),)


@dataclass(frozen=True, slots=True)
class Number(Reply):
    r"""A number.

    The action is a JSON number: an integer if it is whole (1e3 and 12.0 are), otherwise the nearest float, so equal
    answers are equal values (1/2 and 0.50) and graders can set a tolerance.

    A sign, thousands separators, a decimal point, an exponent, a fraction a/b or \frac{a}{b}, and a currency sign (left
    out) are read (`harness.replies.numbers`), after "####", in a box, after "Answer:" or "the answer is", else on the
    last line (`harness.replies.answers`): the number with which the line begins, what its equation comes to, its only
    number, or the one behind its verb.

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
        value = answer_of(strip_reasoning(text), Numbers(self.percent).read, also=_HASH_LABEL)
        if value is not None:
            return Parsed(value)
        return Parsed(error=f"no number was found; end with a line such as '{LINE}'")

    def well_formed(self, text: str) -> bool:
        """Whether a label, a box or hashes give it."""
        places = places_of(strip_reasoning(text), Numbers(self.percent).read, also=_HASH_LABEL)
        return any(place.stated.value is not None for place in places if place.label != "field")

    def constraint(self) -> Mapping[str, Any]:
        """Any work, then "The answer is" and a number at the end."""
        return {"regex": rf"(.|\n)*{_LEAD} -?[0-9]{{1,18}}(\.[0-9]{{1,12}})?%?\."}
