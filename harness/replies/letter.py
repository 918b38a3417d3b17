"""The letter of an option in a multiple-choice question."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_uppercase
from typing import Any

from harness.api import Parsed, Reply

from ._letters import letters
from ._options import plain_option
from ._statements import LABEL, MAX_LABELS, WINDOW, boxes, last_labels, last_line
from ._text import WRAPPING

_CHOSEN = re.compile(r"(?<!\w)(?:(?:option|choice)[ \t]+is|I (?:choose|pick|select)|go with)(?!\w)", re.IGNORECASE)
_ASKED = re.compile(r"(?i:answer is)[ \t:]{0,3}[*_]{0,3}\(?[A-Z](?!\w)")
_TEX = re.compile(r"\\(?:text|textbf|mathrm|mathbf)\{([^{}]*)\}")


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
        find = letters("".join(self.options))
        line = last_line(text)
        letter = self._last_statement(text, line) or plain_option(text, self._exactly, self._announced)
        if letter is None and len(line) <= 20 * WINDOW:
            letter = find.marked(line) or (find.leading(line) if text.strip() == line else None)
        if letter is None:
            letter = self._texts.get(_plain(text[: 20 * WINDOW])) or self._texts.get(_plain(line[: 20 * WINDOW]))
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

    def _exactly(self, text: str) -> str | None:
        find = letters("".join(self.options))
        return find.alone(text, any_case=True) or self._texts.get(_plain(text)) or self._labelled_text(text)

    def _announced(self, text: str) -> str | None:
        return self._exactly(text) or letters("".join(self.options)).leading(text)

    @property
    def _texts(self) -> Mapping[str, str]:
        return {} if isinstance(self.choices, int) else _by_text(self.choices)

    def _last_statement(self, text: str, line: str) -> str | None:
        find = letters("".join(self.options))
        statements: list[tuple[int, str]] = []
        for lead in (LABEL, _CHOSEN):
            for match in last_labels(text, lead):
                statement = text[match.end() : match.end() + WINDOW]
                letter = self._texts.get(_plain(_first_line(statement))) or find.stated(statement)
                if letter:
                    statements.append((match.start(), letter))
                    break
        for start, content in boxes(text)[-MAX_LABELS:]:
            bare = _TEX.sub(r"\1", content[:WINDOW])
            letter = find.alone(bare, any_case=True) or find.leading(bare) or self._texts.get(_plain(bare))
            if letter:
                statements.append((start, letter))
        letter = find.alone(line, any_case=text.strip() == line) or self._labelled_text(line)
        if letter:
            statements.append((len(text.rstrip()) - len(line), letter))
        return max(statements, key=lambda one: one[0])[1] if statements else None

    def _labelled_text(self, line: str) -> str | None:
        """The letter of a line such as "B. Paris", if Paris is B's text."""
        letter = letters("".join(self.options)).leading(line[: 20 * WINDOW])
        if letter is None:
            return None
        _, _, rest = line[: 20 * WINDOW].partition(letter)
        return letter if self._texts.get(_plain(rest.lstrip(")].:"))) == letter else None


def _first_line(text: str) -> str:
    return text.strip(" \t\r\n*_`").split("\n", 1)[0]


@lru_cache(maxsize=512)
def _by_text(choices: tuple[str, ...]) -> dict[str, str]:
    """Plain text → letter, for texts that only one option has and that are no letters themselves."""
    plain = [_plain(choice) for choice in choices]
    return {
        text: letter
        for text, letter in zip(plain, ascii_uppercase, strict=False)
        if plain.count(text) == 1 and len(text) > (1 if text.isalpha() else 0)
    }


def _plain(text: str) -> str:
    return " ".join(text.strip(WRAPPING + ",;:$").split()).casefold()
