"""The letter of an option in a multiple-choice question."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

from harness.api import Parsed, Reply

from ._letters import letters

_ASKED = re.compile(r"(?i:answer is)[ \t:]{0,3}[*_]{0,3}\(?[A-Z](?!\w)")


@dataclass(frozen=True, slots=True)
class Letter(Reply):
    r"""The letter of one of up to 26 options. The action is the upper-case letter.

    The rules; of 1 and 2 the last match in the reply counts, then 3, then 4:

    1. a statement: "answer is (B)", "Answer: B", "the correct option is B", "\boxed{B}", with a few words between
       ("is definitely B"); also with the option's own text instead of the letter ("Answer: Paris");
    2. the last line, if it is the letter alone (B, (B), **B.**), or the letter with its option's text;
    3. the last (B), **B** or "option B" in the last line that is not denied ("not (B)", "(B) is wrong"); in a reply of
       one line also the letter with which it begins ("B. Because …");
    4. the option's text, exactly, as the whole reply or its last line.

    Between rules 2 and 3, a clear statement in another way counts: in a JSON object, an element `<answer>B</answer>`,
    on a line of its own (`plain_option`). Only upper-case letters that stand alone count, except for `(b)` after a
    label, a `b` that ends the line there, `\boxed{b}`, and a reply that is only the letter; an A or I that continues as
    a sentence ("is A proton") is a word. A statement that names several ("B or C") or denies one ("is not B") is none,
    and neither is one of several at the end ("both (A) and (B)").

    Attributes:
        choices: the options' texts in order, or their number if texts do not matter.
        work: whether constrained decoding leaves room for work before the answer. Free text is parsed in the same way.
    """

    choices: tuple[str, ...] | int
    work: bool = True

    def __post_init__(self) -> None:
        count = self.choices if isinstance(self.choices, int) else len(self.choices)
        if not 1 <= count <= 26:
            raise ValueError(f"a letter can stand for 1 to 26 options, not {self.choices!r:.80}")

    @property
    def options(self) -> tuple[str, ...]:
        """The letters."""
        return tuple(ascii_uppercase[: self.choices if isinstance(self.choices, int) else len(self.choices)])

    def parse(self, text: str) -> Parsed:
        """The letter that `text` states."""
        choices = () if isinstance(self.choices, int) else self.choices
        letter = letters("".join(self.options), choices).read(text)
        if letter is not None:
            return Parsed(letter)
        span = f"{self.options[0]} to {self.options[-1]}"
        return Parsed(error=f"no answer was found; end with 'The answer is (X).', X one letter from {span}")

    def well_formed(self, text: str) -> bool:
        """Whether it says "The answer is (X)"."""
        return _ASKED.search(text) is not None

    def constraint(self) -> Mapping[str, Any]:
        """Any work, if there is room for it, then "The answer is (X)." at the end."""
        free = r"(.|\n)*" if self.work else ""
        return {"regex": rf"{free}The answer is \([{self.options[0]}-{self.options[-1]}]\)\."}
