"""One of several labels: yes or no, the classes of a classification, letters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_uppercase
from typing import Any

from harness.api import Parsed, Reply, ReplyField
from harness.extensions.datasets.denials import singles
from harness.replies.statements import WINDOW, labelled
from harness.replies.aside import spoken
from harness.replies.characters import WRAPPING, end_of, last_line
from harness.replies.extract import ANSWER, stated
from harness.replies.options import MARKS, OptionTable, another_follows, plain_option

from .letter import letters

_PAIRS = (("yes", "no"), ("true", "false"))
_LEAD = re.compile(
    rf"{MARKS.pattern}(?:(?:the|option|choice|label|answer|category|class|is|it|clearly|definitely|probably|most|likely)\b"
    rf"[ :]*)+{MARKS.pattern}",
    re.IGNORECASE,
)
_OPENING = re.compile(r"[\W_]*(?:(?:(?:therefore|thus|so|hence|overall|in conclusion)\b[ ,:]*)[\W_]*)?", re.IGNORECASE)
_ENDS = re.compile(r"[*_`\"'”’)\]}$]{0,4}(?:\s*+(?:[.,;:!?)–—\n]|-\s|\Z)|\s+(?:because|since|as)\b)", re.IGNORECASE)
_NO_LONGER = re.compile(
    r"[ \t]+(?!(?:because|since|as|but|for|given|under|based|due|so|when|if|not|it|he|she|they|we|i|you|this|that|these"
    r"|those|there|the|an?|in|on|by|to|is|was|are|were|and|or)\b)\w",
    re.IGNORECASE,
)
"""What follows a "no" that continues: "no evidence", "no longer", "no clue"."""
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
       answer is yes"); words such as "option" may come between;
    2. a clear statement in another way: in a JSON object, an element `<answer>no</answer>`, a line that announces a
       label (`plain_option`);
    3. the whole reply, or its first word or words before a mark ("Yes, because …");
    4. the last line, or its beginning before a mark ("No. …");
    5. the last label that stands as a word anywhere, is not denied ("not relevant") and is not part of an enumeration
       ("yes or no"); yes and no only at the end of a clause ("there is no evidence" is not an answer).

    A "no" that continues as in "no evidence" is not an answer. `Letter` says how single letters are read; rules 1 to 4
    apply to digits.

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

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The label."""
        return (ReplyField("answer", "Final Answer:", {"enum": list(self.labels)}),)

    def parse(self, text: str) -> Parsed:
        """The label that `text` states."""
        text = spoken(text)
        by_letter = {canonical_label(label).upper(): label for label in self.labels}
        if set(by_letter) <= set(ascii_uppercase):
            letter = letters("".join(sorted(by_letter))).read(text)
            label = by_letter[letter] if letter else None
        else:
            label = _labels(self.labels).read(text)
        if label is not None:
            return Parsed(label)
        listed = ", ".join(self.labels[:20])
        return Parsed(error=f"no answer was found; end with 'Final Answer: ' and one of: {listed}")

    def well_formed(self, text: str) -> bool:
        """Whether it says "Final Answer:"."""
        return _ASKED.search(spoken(text)) is not None

    def constraint(self) -> Mapping[str, Any]:
        """Exactly "Final Answer: " and a label."""
        return {"choice": [f"Final Answer: {label}" for label in self.labels]}


def canonical_label(text: str) -> str:
    """The form in which labels are compared.

    >>> canonical_label(' "Procedural_History". ')
    'procedural history'
    """
    return re.sub(r"[\s_-]+", " ", text).strip(WRAPPING + ",;:?$").casefold()


class _Labels:
    """Finds the labels of one task."""

    def __init__(self, labels: tuple[str, ...]) -> None:
        table = {canonical_label(label): label for label in labels}
        for pair, other in (_PAIRS, _PAIRS[::-1]):
            if set(pair) <= set(table) and not set(other) & set(table):
                table |= {word: table[same] for word, same in zip(other, pair, strict=True)}
        self._options = OptionTable(table)
        self._word = self._options.pattern
        self._two = len(labels) == 2
        self._words = not any(label.replace(".", "").isdigit() for label in table)

    def read(self, text: str) -> str | None:
        """The label that `text` states."""
        return (
            stated(text, ANSWER, self._announced)
            or next((label for statement in labelled(text) if (label := self._announced(statement))), None)
            or plain_option(text, self._options.exactly, self._announced)
            or self._opening(text)
            or self._opening(last_line(text))
            or self._last(text)
        )

    def _announced(self, statement: str) -> str | None:
        """The label that `statement` begins with, after words such as "option"."""
        statement = statement[:WINDOW]
        for lead in (MARKS, _LEAD):
            match = self._word.match(statement, end_of(lead, statement, 0))
            if match and not (match[0].lower() == "no" and _NO_LONGER.match(statement, match.end())):
                return None if self._is_listed(statement, match.end()) else self._options.named(match)
        return None

    def _opening(self, text: str) -> str | None:
        """The label that `text` is, or begins with before a mark or a line break."""
        match = self._word.match(text, end_of(_OPENING, text[:WINDOW], 0))
        closed = match and _ends_clause(text, match.end()) and not self._is_listed(text, match.end())
        return self._options.named(match) if match and closed else None

    def _last(self, text: str) -> str | None:
        """The last label that is a whole word."""
        text, label = text[-_TAIL:], None
        for match in singles(self._word, text, self._is_listed) if self._words else ():
            # "there is no evidence" says nothing, and "is it yes?" asks
            if match[0].lower() not in ("yes", "no") or _ends_clause(text, match.end()):
                label = self._options.named(match)
        return label

    def _is_listed(self, text: str, end: int) -> bool:
        """Whether another label follows, as in "yes or no"."""
        return another_follows(text, end, self._word, weak=self._two)


def _ends_clause(text: str, end: int) -> bool:
    return not text.startswith("?", end) and _ENDS.match(text, end) is not None


@lru_cache(maxsize=256)
def _labels(labels: tuple[str, ...]) -> _Labels:
    return _Labels(labels)
