"""What of a reply is for the game and the other players: what stands behind a label."""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.api import Parsed
from harness.replies import (
    FreeText,
    field_of,
    says_nothing,
    strip_reasoning,
    unfenced,
    unquoted,
    valid,
    without_thinking,
)
from harness.replies.characters import is_placeholder
from harness.replies.fields import Statement
from harness.replies.text_tool_calls import without_calls

_BARE = re.compile(r"[^\w]+|_+")
_ENDS = re.compile(
    r"^[ \t]*(?:`{3,}\w*|(?:-[ \t]*){3,}|={3,}|_{3,}|(?:\*[ \t]*){3,}|#{1,6}[ \t]+\S.*|\*\*[^*\n]{1,60}\*\*:?"
    r"|[ \t>*_`-]*(?:my[ \t]+)?(?:private |inner )?"
    r"(?:reasoning|thoughts?|thinking|rationale|explanation|analysis|strategy|notes?)[*_`]{0,3}[ \t]*[:：].*)[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
"""A line behind which nothing is public: a rule, a heading, the label of what was thought."""


@dataclass(frozen=True, slots=True)
class Public(FreeText):
    """The text behind a label, for all to read. The label is found as every field of a reply is (`field_of`).

    The text may have several lines: it ends at a rule, a heading, or a label such as REASONING. A label of other signs
    than words is looked for as it is written.
    """

    def parse(self, text: str) -> Parsed:
        """What is public. An error if the label is missing, or nothing stands behind it."""
        name = _BARE.sub(" ", self.marker or "").strip()
        if not name or without_calls(without_thinking(text))[1]:
            return FreeText.parse(self, text)
        reply = unfenced(strip_reasoning(text))
        stated = field_of(reply, name)
        if stated is None:
            return Parsed(error=f"{self.marker!r} was not found; write it, and your answer behind it")
        said = valid(_whole(reply, stated)).strip()
        for mark in ("**", "__", "`", "*", "_"):  # emphasis of which the label has the other half
            if said.count(mark) % 2:
                said = said.removeprefix(mark).removesuffix(mark).strip()
        said = unquoted(said)
        if says_nothing(said) or is_placeholder(said):
            return Parsed(error=f"nothing stands behind {self.marker!r}")
        return Parsed(said)


def _whole(reply: str, stated: Statement) -> str:
    """What a statement says, with the lines below it that belong to it."""
    is_line = reply[stated.start : stated.end] == stated.value and stated.instead == "\n"
    if not is_line or reply[stated.end : stated.end + 1] not in ("", "\n"):
        return stated.value
    end = _ENDS.search(reply, stated.end)
    return reply[stated.start : end.start() if end else len(reply)]
