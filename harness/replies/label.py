"""One of several labels: yes or no, the classes of a classification, letters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from harness.api import Parsed, Reply

from ._letters import Letters, letters
from ._options import plain_option
from ._statements import WINDOW, labelled, last_line
from ._text import WRAPPING
from .fields import json_fields

_PAIRS = (("yes", "no"), ("true", "false"))
_KEYS = ("answer", "final_answer", "preferred_answer", "label")
_LEAD = re.compile(
    r"(?:(?:the|option|choice|label|answer|category|class|is|it|clearly|definitely|probably|most|likely)\b[ :]*)+"
)
_OPENING = re.compile(r"[\W_]*(?:(?:(?:therefore|thus|so|hence|overall|in conclusion)\b[ ,:]*)[\W_]*)?")
_ENUMERATED = re.compile(r"[\W_]{0,4}(?:or|and|(?P<weak>,)|[/;|&+])[\W_]{0,4}(?:(?:or|and|maybe|perhaps)\b[\W_]{0,4})?")
_NOT = re.compile(r"(?:\b(?:not|neither|nor|never)|n['’]t)(?: an?| the| be| really)?[\W_]*$", re.IGNORECASE)
_ENDS = re.compile(r"[*_`\"'”’)\]}$]{0,4}(?:\s*+(?:[.,;:!?)–—\n]|-\s|\Z)|\s+(?:because|since|as)\b)", re.IGNORECASE)
_NO_LONGER = re.compile(
    r"[ \t]+(?!(?:because|since|as|but|for|given|under|based|due|so|when|if|not|it|he|she|they|we|i|you|this|that|these"
    r"|those|there|the|an?|in|on|by|to|is|was|are|were|and|or)\b)\w",
    re.IGNORECASE,
)
"""What follows a "no" that goes on: "no evidence", "no longer", "no clue"."""
_ASKED = re.compile(r"final[ \t*_]{1,3}answer[ \t*_]{0,3}[:：]", re.IGNORECASE)
_TAIL = 20_000
"""Characters at a reply's end that are searched for a label standing anywhere."""


@dataclass(frozen=True, slots=True)
class Label(Reply):
    """One of several labels. The action is the label as `labels` spells it.

    Labels are compared without case, doubled blanks, marks around them, and joined parts ("unilateral_change"); single
    letters have rules of their own (see below). If yes and no are labels and true and false are not, true means yes and
    false means no, and the other way round.

    The rules, in order:

    1. after the last announcement of an answer that a label follows ("Final Answer: yes", "**Answer:** (B)", "the
    answer
       is yes"); words such as "option" may stand between;
    2. in a JSON object: its "answer", "final_answer", "preferred_answer" or "label";
    3. the whole reply, or its first word or words before a mark ("Yes, because …");
    4. the last line, or its beginning before a mark ("No. …");
    5. the last label that stands as a word anywhere, is not denied ("not relevant") and is not part of an enumeration
       ("yes or no"); yes and no only at the end of a clause ("there is no evidence" is no answer).

    Between rules 2 and 3, an element `<answer>no</answer>` counts, and a line that announces a label (`plain_option`).
    A "no" that continues as in "no evidence" is no answer.

    Letters count in upper case or in brackets, an A or I not as a word of a sentence, by rules 1 to 4 and, in the last
    line only, in brackets or bold; digits by rules 1 to 4.

    Attributes:
        labels: the labels.
    """

    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.labels or len({canonical_label(label) for label in self.labels}) != len(self.labels):
            raise ValueError(f"labels must be given and differ in more than case and marks: {self.labels!r:.200}")

    @property
    def options(self) -> tuple[str, ...]:
        """The labels."""
        return self.labels

    def parse(self, text: str) -> Parsed:
        """The label that `text` states."""
        set_ = _set(self.labels)
        label = next((label for statement in labelled(text) if (label := set_.stated(statement))), None)
        label = (
            label
            or self._json(text)
            or plain_option(text, set_.exactly, set_.announced)
            or set_.whole(text)
            or set_.whole(last_line(text))
            or set_.last(text)
        )
        if label is not None:
            return Parsed(label)
        listed = ", ".join(self.labels[:20])
        return Parsed(error=f"no answer was found; end with 'Final Answer: ' and one of: {listed}")

    def well_formed(self, text: str) -> bool:
        """Whether it says "Final Answer:"."""
        return _ASKED.search(text) is not None

    def constraint(self) -> Mapping[str, Any]:
        """Exactly "Final Answer: " and a label."""
        return {"choice": [f"Final Answer: {label}" for label in self.labels]}

    def _json(self, text: str) -> str | None:
        for value in json_fields(text, _KEYS).values():
            if not isinstance(value, (str, int, float)):
                continue
            plain = str(value).lower() if isinstance(value, bool) else str(value)
            label = _set(self.labels).stated(plain[:WINDOW])
            if label is not None:
                return label
        return None


def canonical_label(text: str) -> str:
    """The form in which labels are compared.

    >>> canonical_label(' "Procedural_History". ')
    'procedural history'
    """
    return re.sub(r"[\s_-]+", " ", text).strip(WRAPPING + ",;:?$").casefold()


class _Set:
    """The labels of one task, made ready."""

    def __init__(self, labels: tuple[str, ...]) -> None:
        self.table = {canonical_label(label): label for label in labels}
        for pair, other in (_PAIRS, _PAIRS[::-1]):
            if set(pair) <= set(self.table) and not set(other) & set(self.table):
                self.table |= {word: self.table[same] for word, same in zip(other, pair, strict=True)}
        single = all(len(label) == 1 and label.isascii() and label.isalpha() for label in self.table)
        self.letters: Letters | None = letters("".join(sorted(self.table)).upper()) if single else None
        self.words = not single and not any(label.replace(".", "").isdigit() for label in self.table)
        longest_first = sorted(self.table, key=len, reverse=True)
        names = "|".join(r"[\s_-]{1,3}".join(map(re.escape, name.split(" "))) for name in longest_first)
        self.word = re.compile(rf"(?<![\w.])(?<!\w-)(?:{names})(?![\w%])(?!-\w)(?!\.\d)", re.IGNORECASE)

    def stated(self, statement: str) -> str | None:
        """The label that `said` begins with."""
        if self.letters:
            letter = (
                self.letters.alone(statement, any_case=True)
                or self.letters.stated(statement)
                or self.letters.leading(statement)
            )
            return self.table[letter.lower()] if letter else None
        start = statement[:WINDOW].lstrip(WRAPPING + ":$")
        lead = _LEAD.match(start.lower())
        for begin in (0, lead.end() if lead else 0):
            match = self.word.match(start.removeprefix("\\text{"), begin) or self.word.match(
                start[begin:].lstrip(WRAPPING)
            )
            end = start.find(match[0]) + len(match[0]) if match else 0
            if match and match[0].lower() == "no" and _NO_LONGER.match(start, end):
                continue
            if match and not self._enumerates(start, end):
                return self._named(match[0])
        return None

    def exactly(self, text: str) -> str | None:
        """The label that `text` is and nothing besides, but for marks around it."""
        if self.letters:
            letter = self.letters.alone(text, any_case=True)
            return self.table[letter.lower()] if letter else None
        return self.table.get(canonical_label(text)) if len(text) <= WINDOW else None

    def announced(self, text: str) -> str | None:
        """As `exactly`, and of letters also one that begins `text` as the label of what follows: "c: text"."""
        return self.whole(text) if self.letters else self.exactly(text)

    def whole(self, text: str) -> str | None:
        """The label that `text` is, or begins with before a mark or a line break."""
        if self.letters:
            letter = self.letters.alone(text, any_case=True) or self.letters.leading(text[:WINDOW])
            return self.table[letter.lower()] if letter else None
        opening = _OPENING.match(text[:WINDOW].lower())
        match = self.word.match(text[:WINDOW], opening.end() if opening else 0)
        if not match or (
            text[match.end() :].strip(WRAPPING)
            and not re.match(r"[*_`\"')\]]*\s*(?:[,.;:!\n–—]|-\s|$)", text[match.end() :])
        ):
            return None
        return None if self._enumerates(text, match.end()) else self._named(match[0])

    def last(self, text: str) -> str | None:
        """The last label that stands as a word."""
        if self.letters:
            letter = self.letters.marked(last_line(text)[-_TAIL:])
            return self.table[letter.lower()] if letter else None
        label, several, text = None, False, text[-_TAIL:]
        for match in self.word.finditer(text) if self.words else ():
            was, several = several, self._enumerates(text, match.end())
            if match[0].lower() in ("yes", "no") and (
                text.startswith("?", match.end()) or not _ENDS.match(text, match.end())
            ):
                continue  # "there is no evidence" says nothing, and "is it yes?" asks
            if not (was or several) and not _NOT.search(text[max(match.start() - 30, 0) : match.start()]):
                label = self._named(match[0])
        return label

    def _named(self, word: str) -> str:
        return self.table[canonical_label(word)]

    def _enumerates(self, text: str, end: int) -> bool:
        """Whether another label follows, as in "yes or no"."""
        join = _ENUMERATED.match(text, end)
        other = self.word.match(text, join.end()) if join else None
        if join is None or other is None:
            return False
        listed = not join["weak"] or len(set(self.table.values())) > 2
        return listed or _ENDS.match(text, other.end()) is not None


@lru_cache(maxsize=256)
def _set(labels: tuple[str, ...]) -> _Set:
    return _Set(labels)
