"""Which failures in a journal are results, and which belong to an outage.

A request that fails after every retry is an error of its move. But an engine that dies fails at all its requests for a
while before anyone knows, and those failures are not results: a resumed run has to send these requests again. So a
failure is *pending* until a later line of the journal shows that its engine has answered again. A failure that is
still pending at the end of the journal, or of the part that one process wrote, does not count: readers take the
episode only up to the batch of that failure. Other turns of the same batch count, since their history was the same.

A refusal is a result at once, since the engine works and answers other requests. An engine that has answered nothing
yet may be set up wrongly, so its refusals are pending too. A run that reaches its end counts them as results all the
same (`refusals_line`): then the requests themselves were at fault.

The journal gets every line at once. Its readers, and the process that writes it, decide with the same code what counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

from harness.api.errors import (
    ContextLengthError,
    EngineError,
    InnerCallError,
    LimitReachedError,
    RefusedError,
    RequestError,
)

from .journal import RESUME, Line

PASSING = (RequestError.kind, EngineError.kind, InnerCallError.kind)
"""Kinds of failed requests that may go well another time."""
REFUSALS = (RefusedError.kind, ContextLengthError.kind)
"""Kinds of requests that an engine did not take."""
UNANSWERED = (*PASSING, *REFUSALS)
"""Kinds of requests that got no answer."""
RECORDED_ERRORS: Mapping[str, type[EngineError]] = {
    error.kind: error
    for error in (EngineError, ContextLengthError, RequestError, RefusedError, InnerCallError, LimitReachedError)
}
"""The `error_kind` of a recorded request → what was raised then."""
Entry = tuple[int, Line]
"""A line and its offset in its file."""


class PendingFailures:
    """Goes through one journal, line by line, and passes on what counts.

    The `engine` of a line is the name of the engine that was asked and how many requests it had answered by then. Moves
    that failed have it (unless failures are results: `--max_error_rate 1`), those that were refused where nothing had
    been answered yet, and while any failure is pending all others have it too.
    """

    def __init__(self) -> None:
        self._answered: dict[str, int] = {}
        self._pending: dict[str, list[Entry]] = {}  # episode → its lines from the first pending failure on

    def __bool__(self) -> bool:
        return bool(self._pending)

    def add(self, line: Line, offset: int = 0) -> list[Entry]:
        """Add the next line; returns the lines that count from now on, those of an episode in their order.

        Raises `KeyError`, `TypeError` or `ValueError` for a line of a strange shape.
        """
        if line.get("k") == RESUME:
            self._pending.clear()
            self._answered.clear()
        if not self._pending and "engine" not in line:
            return [(offset, line)]
        counting: list[Entry] = []
        if "engine" in line:
            name, answered = line["engine"]
            if answered > self._answered.get(name, -1):
                self._answered[name] = answered
                for episode in [e for e, entries in self._pending.items() if self._is_confirmed(entries)]:
                    for entry in self._pending.pop(episode):
                        self._pass_on(entry, counting)
        self._pass_on((offset, line), counting)
        return counting

    def failures(self) -> list[Line]:
        """The moves whose failures are pending."""
        return [line for entries in self._pending.values() for _, line in entries if self._is_pending(line)]

    def _pass_on(self, entry: Entry, counting: list[Entry]) -> None:
        line = entry[1]
        earlier = self._pending.get(line.get("e", ""))
        if self._is_pending(line):
            self._pending.setdefault(line["e"], []).append(entry)
        elif earlier is None or line.get("b") == earlier[0][1]["b"]:
            counting.append(entry)
        else:
            earlier.append(entry)

    def _is_confirmed(self, entries: list[Entry]) -> bool:
        """Whether a failure of the first batch, in which all failed, is pending no more."""
        batch = entries[0][1]["b"]
        first = takewhile(lambda entry: entry[1].get("b") == batch, entries)
        return not all(self._is_pending(line) for _, line in first)

    def _is_pending(self, line: Line) -> bool:
        if "engine" not in line:
            return False
        name, answered = line["engine"]
        kind = line.get("error_kind")
        waits = kind in PASSING or (kind in REFUSALS and not answered)
        return bool(waits and self._answered.get(name, 0) <= answered)


def refusals_line(name: str) -> Line:
    """The line of a journal by which all refusals of an engine that has answered nothing are results."""
    return {"k": "asked", "asked": [0, 0], "engine": [name, 1]}
