"""One of several labels: yes or no, the classes of a classification, letters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_uppercase
from typing import Any

from harness.api import Parsed, Reply, ReplyField
from harness.replies.answers import answer_at, answer_of, places_of, plain
from harness.replies.characters import WRAPPING, end_of, last_line
from harness.replies.conclusions import SPEAKER
from harness.replies.options import FIELDS, LABELS, OptionTable, another_follows, plain_option
from harness.replies.strip_reasoning import strip_reasoning

from .letter import letters

_PAIRS = (("yes", "no"), ("true", "false"))
_OPENING = re.compile(r"[\W_]*(?:(?:(?:therefore|thus|so|hence|overall|in conclusion)\b[ ,:]*)[\W_]*)?", re.IGNORECASE)
_ENDS = re.compile(r"[*_`\"'”’)\]}$]{0,4}(?:\s*+(?:[.,;:!?)–—\n]|-\s|\Z)|\s+(?:because|since|as)\b)", re.IGNORECASE)
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
    5. the only label that the last sentence names, where it leaves no doubt (`harness.replies.conclusions`).

    Lines that begin with different labels ("Travel: no", "Politics: yes") state none by rules 3 and 4.
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
        text = strip_reasoning(text)
        if by_letter := _by_letter(self.labels):
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
        return _ASKED.search(strip_reasoning(text)) is not None

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
        text = plain(text)
        if places := places_of(text, self._options.read, names=FIELDS, also=LABELS):
            return answer_at(text, places, self._options.read)
        return (
            plain_option(text, self._options.exactly, lambda said: self._options.read(said).value)
            or (self._opening(text) or self._opening(last_line(text)) if not self._are_items(text) else None)
            or answer_of(text, self._options.read)
        )

    def _are_items(self, text: str) -> bool:
        """Whether lines begin with different labels before a colon or nothing: "Travel: no" and "Politics: yes"."""
        heads = (line.partition(":")[0] for line in text[-_TAIL:].split("\n"))
        return len({label for head in heads if (label := self._options.exactly(head[:100])) is not None}) > 1

    def _opening(self, text: str) -> str | None:
        """The label that `text` is, or begins with before a mark or a line break."""
        match = self._word.match(text, end_of(_OPENING, text[:500], 0))
        if match and SPEAKER.fullmatch(match[0]) and text[match.end() :].lstrip()[:1] in (":", ","):
            return None
        closed = match and _ends_clause(text, match.end()) and not self._is_listed(text, match.end())
        return self._options.named(match) if match and closed else None

    def _is_listed(self, text: str, end: int) -> bool:
        """Whether another label follows, as in "yes or no"."""
        return another_follows(text, end, self._word, weak=self._two)


def _ends_clause(text: str, end: int) -> bool:
    return not text.startswith("?", end) and _ENDS.match(text, end) is not None


@lru_cache(maxsize=256)
def _by_letter(labels: tuple[str, ...]) -> Mapping[str, str]:
    """Letter → label, if all labels are letters; else empty."""
    by_letter = {canonical_label(label).upper(): label for label in labels}
    return by_letter if set(by_letter) <= set(ascii_uppercase) else {}


@lru_cache(maxsize=256)
def _labels(labels: tuple[str, ...]) -> _Labels:
    return _Labels(labels)
