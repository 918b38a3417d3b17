"""A critique and its verdict line: what tells self-refinement to stop."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.api import Action, Parsed, Reply
from harness.replies import WrappedReply

OTHERWISE = "revise"
"""The verdict of a critique that finds something to change."""

_LINE = re.compile(r"^[ \t>*_#`-]{0,8}verdict[ \t*_`]{0,4}[:：][ \t*_`\"'“(\[]{0,8}([^\n]{0,200})[^\n]*$", re.I | re.M)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict line of a critique.

    Attributes:
        span: from where to where in the whole text the stop signal stands; None if the verdict is another one.
        end: where its line ends.
    """

    span: tuple[int, int] | None
    end: int


def verdict(text: str, signal: str, first: bool = False) -> Verdict | None:
    """The verdict of the last line that begins with "Verdict:" (of the first one, where an answer follows the
    critique); None without such a line. It stops only if it begins with the signal, as words of its own and in any
    case: a signal anywhere else in the reply ("not approved", a quoted instruction) is none."""
    lines = list(_LINE.finditer(text))
    if not lines:
        return None
    line = lines[0 if first else -1]
    found = re.compile(rf"{re.escape(signal)}(?!\w)", re.IGNORECASE).match(text, line.start(1), line.end(1))
    return Verdict(found.span() if found else None, line.end())


@dataclass(frozen=True, slots=True)
class Feedback(Reply):
    """A critique that ends in a line "Verdict: …".

    The action is {"feedback": the text, "span": where the signal stands in it, None if it does not stop}. A critique
    without a verdict is an error, and is read all the same, as one that does not stop.

    Attributes:
        signal: the verdict that stops.
    """

    signal: str

    @property
    def noop(self) -> Action:
        """Nothing to say, and no stop."""
        return {"feedback": "", "span": None}

    def allows(self, action: Action) -> bool:
        """A text, and whether it stops."""
        if not isinstance(action, Mapping) or set(action) != {"feedback", "span"}:
            return False
        span = action["span"]
        return isinstance(action["feedback"], str) and (span is None or (isinstance(span, list) and len(span) == 2))

    def parse(self, text: str) -> Parsed:
        """The critique; never raises."""
        said = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").strip()
        found = verdict(said, self.signal)
        action = {"feedback": said, "span": list(found.span) if found and found.span else None}
        if found is None:
            error = f"the last line must be 'Verdict: {self.signal}' or 'Verdict: {OTHERWISE}'"
            return Parsed(error=error, fallback_action=action if said else None)
        return Parsed(action)

    def constraint(self) -> Mapping[str, Any] | None:
        """None: a critique is free text."""
        return None


@dataclass(frozen=True, slots=True)
class Rewritten(WrappedReply):
    """An answer that follows a critique: read in what stands behind the verdict line, or in all if there is none.

    Where the critique approves, there need be no answer behind it; the action is then None.

    Attributes:
        signal: the verdict that approves.
    """

    signal: str

    def parse(self, text: str) -> Parsed:
        """The answer; nothing that the critique says is taken for it."""
        _, span, answer = parted(text, self.signal)
        parsed = self.inner.parse(answer)
        return Parsed() if parsed.error is not None and span is not None else parsed

    def well_formed(self, text: str) -> bool:
        """Whether the answer keeps to its form."""
        return self.inner.well_formed(parted(text, self.signal)[2])

    def constraint(self) -> None:
        """None: the critique before the answer is free text."""


def parted(text: str, signal: str) -> tuple[str, tuple[int, int] | None, str]:
    """(critique with its verdict line, where the signal stands in the text, the answer behind it). A text without a
    verdict is all answer."""
    found = verdict(text, signal, first=True)
    return ("", None, text) if found is None else (text[: found.end].strip(), found.span, text[found.end :].strip())
