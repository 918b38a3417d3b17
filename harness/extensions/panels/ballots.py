"""Ballots: which of several labelled candidates an agent approves of, ranks, or gives points to."""

from __future__ import annotations

import itertools
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from harness.api import Action, Facts, Parsed, Reply, ReplyField
from harness.replies.characters import end_of, last_line
from harness.replies.extract import field_of
from harness.replies.statements import last_labels
from harness.replies.strip_reasoning import strip_reasoning

from .ranks import in_ranks

_WIDTH = 20_000
"""Characters of a line that are read: a thousand candidates with their points."""
_GAP = re.compile(r"[\s*_`>#]*")
_NONE = ("none", "nobody", "no one", "nothing")
_WORD = re.compile(r"[^\W_]+")
_PLACES = re.compile(r"\s*(?:\d{1,4}[.)]\s*)?([^\W_]+)\s*")
_GIVEN = re.compile(
    r"(?<![^\W_])([^\W\d_]{1,4})(?:[^\w\n]{1,20}gets)?[^\w\n,;]{1,20}?([-−]?\d++(?:\.\d++)?)", re.IGNORECASE
)
"""A label and its points: A=6, **B**: 4, C gets 2. A comma ends a pair: "6 to A, 4 to B" gives A no 4."""
_IN_BRACKETS = re.compile(r"[ \t]+\([^()\n]{1,80}\)")
_ITEM = re.compile(r"([ \t]*\d{1,4}[.)][ \t]*[^\s:–—-]{1,40}?[*_`]{0,3}):?[ \t]+(?:[:–—-]{1,2}[ \t]+.*)")
"""A numbered line with a remark: "1. **A** - clear"."""
_TIE = re.compile(r"[^\W_][ \t*_`]{0,6}=[ \t*_`]{0,6}[^\W\d_]")
"""Two candidates on one rank: "A = B"."""
_WHOLE = re.compile(r"\d{1,9}")
_DECORATION = str.maketrans("", "", "*_`\"'“”[](){}")


@dataclass(frozen=True, slots=True)
class CandidateBallot(Reply):
    """A line that begins with `marker`, or a whole last line; the last line with the marker counts.

    Where nothing follows the marker, the lines below it are read, up to the first that is not part of a ballot.

    Attributes:
        candidates: their labels, such as A, B, C.
    """

    candidates: tuple[str, ...] = field()

    marker: ClassVar[str]
    placeholder: ClassVar[str]  # what follows it in the sample, with placeholders

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The ballot, after its marker."""
        return (ReplyField(self.marker.rstrip(":").lower(), self.marker),)

    def says(self, action: Action) -> Facts:
        """The ballot in words."""
        return {self.fields[0].name: self.in_words(action)}

    @property
    def examples(self) -> tuple[Action, ...]:
        """Ballots of voters who like one, two, or all."""
        return tuple(self.of(self.candidates[i:] or self.candidates) for i in range(min(3, len(self.candidates))))

    def parse(self, text: str) -> Parsed:
        """The ballot that `text` states."""
        text = strip_reasoning(text)
        error = None
        for statement in self._statements(text):
            action, error = self.read(statement)
            if error is None and not self._is_chance(text, action):
                return Parsed(action)
        return Parsed(
            error=f"{error or f'no line begins with {self.marker!r}'}; end with a line such as: {self.sample()}"
        )

    def _is_chance(self, text: str, action: Action) -> bool:
        """Whether a ballot is the last line of a reply of several lines without the marker, and has one candidate of
        many: it may be the end of a list."""
        alone = len(action) == 1 and len(self.candidates) > 1 and len(text.split("\n")) > len(self.candidates) - 1
        return alone and "\n" in text.strip() and self.marker.rstrip(":").lower() not in text.lower()

    def well_formed(self, text: str) -> bool:
        """Whether its last line has the marker."""
        return last_line(strip_reasoning(text)).startswith(self.marker)

    @abstractmethod
    def read(self, statement: str) -> tuple[Action, str | None]:
        """Return (the action, None), or (None, what is wrong with a line after the marker)."""

    @abstractmethod
    def in_words(self, action: Action) -> str:
        """A ballot in words, without the marker."""

    def sample(self) -> str:
        """The line with placeholders: a ballot as an example would be copied, and win elections."""
        return f"{self.marker} {self.placeholder}"

    @abstractmethod
    def of(self, preferred: Sequence[str]) -> Action:
        """The ballot of a voter to whom these labels are acceptable, the best first; at least one."""

    def _statements(self, text: str) -> Iterator[str]:
        """What follows the last marker; without one, the last line, and the field of that name elsewhere."""
        labelled, line = self._line(text)
        yield line
        field = None if labelled else field_of(text, self.marker.rstrip(":").lower())
        if field is not None and not field.inline:
            yield field.value.strip()[:_WIDTH]

    def _line(self, text: str) -> tuple[bool, str]:
        """Whether the reply has the marker, and the line behind the last one, else its last line."""
        pattern = re.compile(
            rf"(?<![^\W_]){re.escape(self.marker.rstrip(':'))}[\s*_`]{{0,5}}(?:\([^()\n]{{1,40}}\)[\s*_`]{{0,5}})?[:：]",
            re.IGNORECASE,
        )
        for match in last_labels(text, pattern, (self.marker.rstrip(":").lower(),)):
            start = end_of(_GAP, text, match.end())
            line, *below = text[start : start + _WIDTH].split("\n", len(self.candidates))
            if "\n" in text[match.end() : start]:
                lines = (_item(one) for one in below[: len(self.candidates) - 1] if one.strip())
                return True, ", ".join(
                    [_item(line), *itertools.takewhile(lambda one: self.read(one)[1] is None, lines)]
                )
            return True, line
        return False, last_line(text)[:_WIDTH]

    def _unknown(self, word: str) -> str:
        shown = ", ".join(self.candidates[:20]) + (", …" if len(self.candidates) > 20 else "")
        return f"{word[:40]!r} is no candidate; they are {shown}"


@dataclass(frozen=True, slots=True)
class Approval(CandidateBallot):
    """Any number of candidates: "Approve: A, C", or "Approve: none". The action lists labels in the ballot's order.

    Labels are separated by commas, blanks, "and" or "&"; anything else makes the line unreadable.
    """

    marker, placeholder = "Approve:", "<letter>, <letter>, …"

    def allows(self, action: Action) -> bool:
        """A list of candidates, none of them twice."""
        return _is_list_of(action, self.candidates)

    def read(self, statement: str) -> tuple[Action, str | None]:
        """The labels of a line."""
        if statement.translate(_DECORATION).strip(" .!").casefold() in _NONE:
            return [], None
        approved: set[str] = set()
        known = frozenset(self.candidates)
        for word in _WORD.findall(statement):
            label = _label(word, known)
            if label is None and word.casefold() != "and":
                return None, self._unknown(word)
            approved |= {label} if label is not None else set()
        if not approved:
            return None, "no candidate is named"
        return [label for label in self.candidates if label in approved], None

    def of(self, preferred: Sequence[str]) -> Action:
        """All of them."""
        return [label for label in self.candidates if label in preferred]

    def in_words(self, action: Action) -> str:
        """A, C."""
        return ", ".join(action) or "none"

    def constraint(self) -> Mapping[str, Any]:
        """The marker and labels between commas, or none."""
        one = f"({'|'.join(self.candidates)})"
        return {"regex": rf"{self.marker} (none|{one}(, {one}){{0,{len(self.candidates) - 1}}})"}


@dataclass(frozen=True, slots=True)
class Ranking(CandidateBallot):
    """Candidates from the best down: "Ranking: B > A > C". The action lists labels; those left out are not ranked.

    Labels are separated by ">", commas, semicolons or blanks; a repeated label makes the line unreadable.
    """

    marker, placeholder = "Ranking:", "<best letter> > <next letter> > …"

    def allows(self, action: Action) -> bool:
        """A list of at least one candidate, none of them twice."""
        return bool(action) and _is_list_of(action, self.candidates)

    def _statements(self, text: str) -> Iterator[str]:
        """What `CandidateBallot` does, and before it a list of all candidates without the marker."""
        labelled, _ = self._line(text)
        ranked = in_ranks(text, self.candidates)
        whole = [] if ranked is None else [" > ".join(ranked)]
        stated = super(Ranking, self)._statements(text)
        yield from (*stated, *whole) if labelled else (*whole, *stated)

    def read(self, statement: str) -> tuple[Action, str | None]:
        """The labels of a line, in order."""
        ranked: dict[str, None] = {}
        known = frozenset(self.candidates)
        statement = _IN_BRACKETS.sub("", statement.replace("&gt;", ">").replace("＞", ">"))
        if "<" in statement:
            return None, "write the best first, with > between"
        if _TIE.search(statement):
            return None, "write candidates one after another, with > between; = is no rank"
        parts = re.split(r"[>,;→]|\s-+\s", statement.translate(_DECORATION))
        words = [word for part in parts for word in self._words(part)]
        for word in words:
            label = _label(word, known)
            if label is None:
                return None, self._unknown(word)
            if label in ranked:
                return None, f"{label} stands in the ranking twice"
            ranked[label] = None
        return (list(ranked), None) if ranked else (None, "no candidate is named")

    def _words(self, part: str) -> Sequence[str]:
        """The labels of a part, which may begin with its place: "1. A"."""
        place = _PLACES.fullmatch(part.rstrip(". "))
        return [place[1]] if place else _WORD.findall(part)

    def of(self, preferred: Sequence[str]) -> Action:
        """In their order."""
        return list(preferred)

    def in_words(self, action: Action) -> str:
        """B > A > C."""
        return " > ".join(action)

    def constraint(self) -> Mapping[str, Any]:
        """The marker and labels. No short regular expression can forbid that a label stands twice."""
        one = f"({'|'.join(self.candidates)})"
        return {"regex": rf"{self.marker} {one}( > {one}){{0,{len(self.candidates) - 1}}}"}


@dataclass(frozen=True, slots=True)
class Points(CandidateBallot):
    """Points for candidates, `total` at most: "Points: A=6, B=4".

    The action is label → points, without those that get none.
    """

    total: int = 10

    marker, placeholder = "Points:", "<letter>=<points>, <letter>=<points>, …"

    def allows(self, action: Action) -> bool:
        """A mapping of candidates to whole numbers above 0, `total` at most in all."""
        if not isinstance(action, Mapping) or not action or not _is_list_of(list(action), self.candidates):
            return False
        return all(type(value) is int and value > 0 for value in action.values()) and sum(action.values()) <= self.total

    def read(self, statement: str) -> tuple[Action, str | None]:
        """The points of a line."""
        given: dict[str, int] = {}
        known = frozenset(self.candidates)
        for word, number in _GIVEN.findall(statement):
            label = _label(word, known)
            if label is None:
                return None, self._unknown(word)
            if label in given:
                return None, f"{label} gets points twice"
            if not _WHOLE.fullmatch(number):
                return None, f"{label} gets {number[:20]} points; write whole numbers from 0 to {self.total}"
            given[label] = int(number)
        if sum(given.values()) > self.total:
            return None, f"these are {sum(given.values())} points; you have {self.total}"
        if not any(given.values()):
            return None, "no candidate gets a point"
        return {label: given[label] for label in self.candidates if given.get(label)}, None

    def of(self, preferred: Sequence[str]) -> Action:
        """As equal parts of all points as there are, the larger ones to the better; none to those beyond `total`."""
        part, rest = divmod(self.total, len(preferred))
        return {label: part + (i < rest) for i, label in enumerate(preferred) if part + (i < rest)}

    def in_words(self, action: Action) -> str:
        """A=6, B=4."""
        return ", ".join(f"{label}={points}" for label, points in action.items())

    def constraint(self) -> Mapping[str, Any]:
        """The marker and pairs; the sum is checked afterwards."""
        pair = f"({'|'.join(self.candidates)})=[0-9]{{1,{len(str(self.total))}}}"
        return {"regex": rf"{self.marker} {pair}(, {pair}){{0,{len(self.candidates) - 1}}}"}


def _label(word: str, known: frozenset[str]) -> str | None:
    """The candidate of a label in any case."""
    return next((label for label in (word, word.upper()) if label in known), None)


def _is_list_of(action: Action, candidates: Sequence[str]) -> bool:
    if not isinstance(action, list | tuple) or not all(isinstance(label, str) for label in action):
        return False
    return len(set(action)) == len(action) and set(action) <= set(candidates)


def _item(line: str) -> str:
    """A line of a numbered list without its remark."""
    match = _ITEM.fullmatch(line)
    return match[1] if match else line
