"""Answers of a discussion: agreement with an answer on the table or another one, and criticism that names a flaw."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.api import Action, Facts, Parsed, ReplyField
from harness.replies.extract import field_of
from harness.replies.strip_reasoning import strip_reasoning
from harness.replies.wrapped_reply import WrappedReply

_STANCE = re.compile(
    r"^[^\w\n]{0,8}"
    r"(?:(?:I[ \t]{1,3}|[^\n:]{1,40}:[*_ \t]{0,4})?((?:DIS)?AGREE)\b(?![ \t]{0,3}(?:or\b|/))"
    r"|((?i:(?:dis)?agree))(?=[*_ \t]{0,4}(?:[.,:;!]|$)))",
    re.MULTILINE,
)
_FLAW = re.compile(r"^[^\w\n]{0,8}(?i:flaws?)\b[^:\n]{0,40}:[*_ \t]{0,8}[^\s*_]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class AgreeOrCounter(WrappedReply):
    """AGREE, which adopts `proposal`, or DISAGREE and an answer in the form `inner`. The action is the answer.

    The first line that begins with either word counts, also behind "I" or a label; in small letters the word must be
    followed by a mark or nothing.
    A reply without such a line is read by `inner`, and is not well-formed.
    """

    proposal: Action

    def allows(self, action: Action) -> bool:
        """The proposal, or what the inner form allows."""
        return self.inner.allows(action)

    def says(self, action: Action) -> Facts:
        """The stance, and after DISAGREE what the inner form says."""
        return {"stance": "AGREE"} if action == self.proposal else {"stance": "DISAGREE", **self.inner.says(action)}

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The stance, and the inner form's."""
        return (ReplyField("stance", "", {"enum": ["AGREE", "DISAGREE"]}), *self.inner.fields)

    def written(self, action: Action) -> str:
        """The stance on a line, and the answer below it."""
        return "AGREE" if action == self.proposal else f"DISAGREE\n{self.inner.written(action)}"

    @property
    def examples(self) -> tuple[Action, ...]:
        """The proposal and the inner form's answers."""
        return (self.proposal, *(one for one in self.inner.examples if one != self.proposal))

    def parse(self, text: str) -> Parsed:
        """Read the stance, and after DISAGREE the counter-proposal."""
        text = _arranged(text)
        stance = _STANCE.search(text)
        if stance is None:
            parsed = self.inner.parse(text)
            wanted = "begin with AGREE, or with DISAGREE and your own answer"
            return parsed if parsed.error is None else Parsed(error=f"{wanted} ({parsed.error})")
        if _is_yes(stance):
            return Parsed(self.proposal)
        parsed = self.inner.parse(text[stance.end() :])
        return parsed if parsed.error is None else Parsed(error=f"your own answer after DISAGREE: {parsed.error}")

    def agrees(self, text: str) -> bool:
        """Whether a text adopts the proposal."""
        text = _arranged(text)
        stance = _STANCE.search(text)
        return stance is not None and _is_yes(stance)

    def well_formed(self, text: str) -> bool:
        """Whether a readable text says AGREE, or DISAGREE and a well-formed answer."""
        text = _arranged(text)
        stance = _STANCE.search(text)
        return stance is not None and (_is_yes(stance) or self.inner.well_formed(text[stance.end() :]))

    def constraint(self) -> Mapping[str, Any] | None:
        """AGREE, or DISAGREE above an answer, where the inner form is a regular expression or a choice."""
        inner = self.inner.constraint() or {}
        regex = inner.get("regex") or "|".join(map(re.escape, inner.get("choice", ())))
        return {"regex": rf"AGREE|DISAGREE\n({regex})"} if regex else None


def _arranged(text: str) -> str:
    """The reply without thinking; a stance that is in an object, an element or below a heading comes first."""
    text = strip_reasoning(text)
    field = field_of(text, "stance")
    return text if field is None or field.inline else f"{field.value.strip()}\n{field.rest(text)}"


def _is_yes(stance: re.Match[str]) -> bool:
    return not stance[0].casefold().endswith("disagree")


@dataclass(frozen=True, slots=True)
class NamesFlaw(WrappedReply):
    """An answer in the form `inner`, well-formed only with a line "Flaw: …" that says what is wrong or missing."""

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The field with the flaw, and those of the inner form."""
        return (ReplyField("flaw", "Flaw:", required=False), *self.inner.fields)

    def says(self, action: Action) -> Facts:
        """A flaw, and what the inner form says."""
        return {"flaw": "the second step has no reason.", **self.inner.says(action)}

    def written(self, action: Action) -> str:
        """The flaw on a line, above the answer."""
        return f"Flaw: the second step has no reason.\n{self.inner.written(action)}"

    def well_formed(self, text: str) -> bool:
        """Whether a readable text names a flaw and is well-formed otherwise."""
        return _FLAW.search(strip_reasoning(text)) is not None and self.inner.well_formed(text)

    def constraint(self) -> Mapping[str, Any] | None:
        """The flaw on a line, above an answer that is a regular expression or a choice."""
        inner = self.inner.constraint() or {}
        regex = inner.get("regex") or "|".join(map(re.escape, inner.get("choice", ())))
        return {"regex": rf"Flaw: [^\n]{{1,400}}\n({regex})"} if regex else None
