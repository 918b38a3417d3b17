"""A critique and its verdict line, which can stop self-refinement."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.api import Action, Facts, Parsed, Reply, ReplyField
from harness.replies import WrappedReply, valid, without_thinking

OTHERWISE = "revise"
"""The verdict of a critique that asks for changes."""

_LINE = re.compile(r"^[ \t>*_#`-]{0,8}verdict[ \t*_`]{0,4}[:：][ \t*_`\"'“(\[]{0,8}([^\n]{0,200})[^\n]*$", re.I | re.M)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict line of a critique.

    Attributes:
        span: start and end of the stop signal in the whole text; None for any other verdict.
        end: the end of its line in the text.
    """

    span: tuple[int, int] | None
    end: int


def verdict(text: str, signal: str, first: bool = False) -> Verdict | None:
    """Return the verdict of the last line that begins with "Verdict:"; None without such a line.

    The verdict stops only if it begins with the signal, as whole words in any case. A signal anywhere else in the reply
    ("not approved", a quoted instruction) does not stop.

    Args:
        first: use the first such line instead, where an answer follows the critique.
    """
    lines = list(_LINE.finditer(text))
    if not lines:
        return None
    line = lines[0 if first else -1]
    stop = re.compile(rf"{re.escape(signal)}(?!\w)", re.IGNORECASE).match(text, line.start(1), line.end(1))
    return Verdict(stop.span() if stop else None, line.end())


@dataclass(frozen=True, slots=True)
class Feedback(Reply):
    """A critique that ends in a line "Verdict: …".

    The action is {"feedback": the text, "span": where the signal is, None if the critique does not stop}. A critique
    without a verdict is an error; its fallback action does not stop.

    Attributes:
        signal: the verdict that stops.
    """

    signal: str

    @property
    def noop(self) -> Action:
        """An empty critique that does not stop."""
        return {"feedback": "", "span": None}

    def allows(self, action: Action) -> bool:
        """A mapping of a text and a span."""
        if not isinstance(action, Mapping) or set(action) != {"feedback", "span"}:
            return False
        span = action["span"]
        return isinstance(action["feedback"], str) and (span is None or (isinstance(span, list) and len(span) == 2))

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The critique, which ends in its verdict."""
        return (ReplyField("feedback"),)

    def says(self, action: Action) -> Facts:
        """The critique."""
        return {"feedback": action["feedback"]}

    @property
    def examples(self) -> tuple[Action, ...]:
        """One that asks for changes, and one that approves."""
        return tuple(
            self.parse(f"The second step is wrong.\nVerdict: {word}").action for word in (OTHERWISE, self.signal)
        )

    def parse(self, text: str) -> Parsed:
        """Parse the critique; never raises."""
        feedback = valid(without_thinking(text)).strip()
        line = verdict(feedback, self.signal)
        action = {"feedback": feedback, "span": list(line.span) if line and line.span else None}
        if line is None:
            error = f"the last line must be 'Verdict: {self.signal}' or 'Verdict: {OTHERWISE}'"
            return Parsed(error=error, fallback_action=action if feedback else None)
        return Parsed(action)

    def constraint(self) -> Mapping[str, Any] | None:
        """None: a critique is free text."""
        return None


@dataclass(frozen=True, slots=True)
class AnswerAfterCritique(WrappedReply):
    """An answer after a critique: read behind the verdict line, or in the whole text without one.

    If the critique approves, the answer may be missing; the action is then None.

    Attributes:
        signal: the verdict that approves.
    """

    signal: str

    def written(self, action: Action) -> str:
        """A critique with its verdict, and the answer below it."""
        verdict = f"The second step is wrong.\nVerdict: {self.signal if action is None else OTHERWISE}"
        return verdict if action is None else f"{verdict}\n\n{self.inner.written(action)}"

    def parse(self, text: str) -> Parsed:
        """Parse the answer; text of the critique is never taken for it."""
        _, span, answer = split_reply(without_thinking(text), self.signal)
        parsed = self.inner.parse(answer)
        return Parsed() if parsed.error is not None and span is not None else parsed

    def well_formed(self, text: str) -> bool:
        """Whether the answer is well-formed."""
        return self.inner.well_formed(split_reply(without_thinking(text), self.signal)[2])

    def constraint(self) -> None:
        """None: the critique before the answer is free text."""


def split_reply(text: str, signal: str) -> tuple[str, tuple[int, int] | None, str]:
    """Return (critique with its verdict line, span of the signal in the text, the answer after it).

    A text without a verdict is all answer.
    """
    line = verdict(text, signal, first=True)
    return ("", None, text) if line is None else (text[: line.end].strip(), line.span, text[line.end :].strip())
