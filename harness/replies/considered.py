"""An answer together with how sure its writer is of it: what a panel's members are asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from harness.api import Action, Parsed, Reply

from .fields import confidence, json_fields

Style = Literal["none", "line", "json"]
"""How a confidence is stated: not at all, in a last line `Confidence: 0.8`, or as a field of one JSON object."""

KEYS = ("answer", "confidence", "malformed")
_LINE = re.compile(
    r"^[ \t>*_#-]{0,8}confidence[ \t*_]{0,4}[:=][ \t*_]{0,4}([^\n]{0,40})$", re.IGNORECASE | re.MULTILINE
)
_FENCE = re.compile(r"\A\s*```(?:json)?\s*|\s*```\s*\Z", re.IGNORECASE)
_TAIL = 4_000
"""Characters at the end of a reply in which the line with the confidence is looked for."""


@dataclass(frozen=True, slots=True)
class Considered(Reply):
    """An answer in the form `inner`, and a confidence from 0 to 1 (DarkForest, Section 3.2).

    The action is {"answer": `inner`'s action, "confidence": number or None, "malformed": whether the reply could be
    read but is not in the form that was asked for}. A plain answer is legal too: policies need not know of confidence.

    "line": the last line "Confidence: 0.85" is taken out before `inner` reads the rest. "json": the answer is the text
    of the field `answer`; a reply without such an object is read as plain text, and malformed. A reply without a
    confidence is not malformed for that: what is missing is told apart from what is wrong.
    """

    inner: Reply
    style: Style = "line"

    @property
    def options(self) -> tuple[Action, ...] | None:
        """The inner form's."""
        return self.inner.options

    @property
    def idle(self) -> Action:
        """The inner form's."""
        return self.inner.idle

    def allows(self, action: Action) -> bool:
        """A legal answer, alone or with a confidence from 0 to 1 or none."""
        if not _is_considered(action):
            return self.inner.allows(action)
        stated = action["confidence"]
        sure = stated is None or (type(stated) in (int, float) and 0 <= stated <= 1)
        return sure and isinstance(action["malformed"], bool) and self.inner.allows(action["answer"])

    def parse(self, text: str) -> Parsed:
        """The answer with its confidence; an error only where the inner form finds no answer."""
        if self.style == "json":
            return self._object(text)
        stated = None
        if self.style == "line":
            tail = max(0, len(text) - _TAIL)
            lines = list(_LINE.finditer(text, tail))
            if lines:
                stated = _number(lines[-1][1])
                text = text[: lines[-1].start()].rstrip() + text[lines[-1].end() :]
        return self._read(text, stated, text)

    def exact(self, text: str) -> bool:
        """Whether a text that can be read keeps to the form."""
        parsed = self.parse(text)
        return parsed.error is None and not parsed.action["malformed"]

    def constraint(self) -> Mapping[str, Any] | None:
        """The inner form's, with the line behind it where that is a regular expression; or a JSON schema."""
        if self.style == "json":
            options = self.inner.options
            answer = {"enum": [str(option) for option in options]} if options else {"type": "string", "maxLength": 2000}
            fields = {
                "reasoning": {"type": "string", "maxLength": 4000},
                "answer": answer,
                "confidence": {"type": "number", "minimum": 0, "maximum": 1},
            }
            return {"json": {"type": "object", "properties": fields, "required": list(fields)}}
        inner = self.inner.constraint()
        if self.style == "none" or inner is None:
            return inner
        regex = inner.get("regex") or "|".join(map(re.escape, inner.get("choice", ())))
        return {"regex": rf"({regex})\nConfidence: (0\.[0-9]{{1,2}}|1\.0)"} if regex else None

    def _object(self, text: str) -> Parsed:
        found = json_fields(text, ("answer", "confidence", "confidence_level"))
        if found.get("answer") is None:
            return self._read(text, None, None)
        answer = found["answer"] if isinstance(found["answer"], str) else json.dumps(found["answer"])
        stated = confidence(found.get("confidence", found.get("confidence_level")))
        bare = _FENCE.sub("", text).strip()
        exact = bare.startswith("{") and bare.endswith("}")
        for said in (answer, f"Final Answer: {answer}"):
            parsed = self.inner.parse(said)
            if parsed.error is None:
                return Parsed({"answer": parsed.action, "confidence": stated, "malformed": not exact})
        return self._read(text, stated, None)

    def _read(self, text: str, stated: float | None, asked: str | None) -> Parsed:
        """What the inner form reads; `asked` is the text that should keep to its form, None if none can."""
        parsed = self.inner.parse(text)
        if parsed.error is not None:
            return Parsed(error=parsed.error)
        malformed = asked is None or not self.inner.exact(asked)
        return Parsed({"answer": parsed.action, "confidence": stated, "malformed": malformed})


def considered(action: Action) -> tuple[Action, float | None, bool]:
    """(answer, confidence, malformed) of an action of `Considered`; a plain answer has no confidence."""
    if _is_considered(action):
        return action["answer"], action["confidence"], action["malformed"]
    return action, None, False


def _is_considered(action: Action) -> bool:
    return isinstance(action, Mapping) and set(action) == set(KEYS)


def _number(text: str) -> float | None:
    """A confidence out of the rest of its line: 0.85, 85%, "85 out of 100", 0.9 (quite sure)."""
    words = text.strip("*_`\"'()[] \t\r").rstrip(".").split()
    if not words:
        return None
    percent = len(words) > 1 and words[1].lower().startswith(("%", "percent"))
    return confidence(words[0].rstrip(",;.*") + ("%" if percent else ""))
