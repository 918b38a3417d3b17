"""An answer in free text."""

from __future__ import annotations

import itertools
import re
from collections import deque
from dataclasses import dataclass

from harness.api import Action, Parsed, Reply, ReplyField

from .call_marks import has_envelope
from .characters import is_placeholder, markers, says_nothing, valid
from .strip_reasoning import without_thinking

_MARKS_BEFORE = re.compile(r"[*_]{1,3}$")


@dataclass(frozen=True, slots=True)
class FreeText(Reply):
    """The reply itself, without its thinking and blanks around it; where it is a call of a tool that is written as
    text, the text that the call gives.

    Attributes:
        marker: what announces the answer, in any case; the last one counts, and a reply without it has no
            answer. None if the whole reply is the answer.
        stop: lines that end the answer; text from the first of them on is left out.
    """

    marker: str | None = None
    stop: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The text, after the marker."""
        return (ReplyField("answer", self.marker or ""),)

    @property
    def examples(self) -> tuple[Action, ...]:
        """A sentence, and a text of two paragraphs."""
        return ("The river rises in the north.", "It rains.\n\nSo we stay: all of us.")

    def parse(self, text: str) -> Parsed:
        """The text. An error if nothing is left."""
        said, text = None, without_thinking(text)
        if has_envelope(text):
            from .text_tool_calls import only_text, without_calls

            text, calls = without_calls(text)
            label = (self.marker or "").strip(" \t:：#*").casefold()
            said = only_text(calls, (label, "answer", "text", "message", "content", "response"))
        if said is not None:
            text = said
        elif self.marker:
            marked = deque(markers(text, self.marker), 1)
            if not marked:
                return Parsed(error=f"{self.marker!r} was not found; write it, and your answer behind it")
            at = marked[0].start()
            before = _MARKS_BEFORE.search(text[max(0, at - 4) : at])
            text = text[marked[0].end() :]
            if before is not None:  # the other half of the marks around the label
                text = (
                    text.lstrip().removeprefix(before[0])
                    if text.lstrip().startswith(before[0])
                    else text.replace(before[0], "", 1)
                )
        ends = {line.strip() for line in self.stop}
        text = "\n".join(itertools.takewhile(lambda line: line.strip() not in ends, text.split("\n")))
        stripped = valid(text).strip()
        if not says_nothing(stripped) and not is_placeholder(stripped):
            return Parsed(stripped)
        return Parsed(error=f"nothing stands behind {self.marker!r}" if self.marker else "the answer is empty")
