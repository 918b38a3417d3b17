"""Where a reply says its FinQA program."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.api import Action, Parsed, Reply

from ._finqa_text import ARITHMETIC, EXAMPLE, OPERATIONS, TABLE, Problem, Program, Reading, parse

_LABEL = re.compile(r"(?<!\w)program[ \t]{0,3}[*_`\"']{0,4}[ \t]{0,3}[:：=][ \t*_`]{0,6}", re.IGNORECASE)
_LABELS = 50
"""How many labels are tried, from the last one back; bounds the time."""
_WINDOW = 6_000
"""Characters behind a label that are read; more than `MAX_STEPS` steps take."""
_WRAPPING = re.compile(r"(?:\s|```+[\w+-]{0,20}|[*_`\"'“”\[])*+")
_OPERATION = re.compile(rf"(?<![\w#])(?:{'|'.join(OPERATIONS)})\s{{0,3}}\(", re.IGNORECASE)
_NAMED = re.compile(r"(?<!\w)(?:#[0-9]{1,3}|[A-Za-z_]\w{0,40})\s{0,3}=\s{0,3}\Z")
_JSON = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class ProgramReply(Reply):
    """A reply that ends in a FinQA program; the action is the program as text, in the benchmark's own form.

    Read is, in this order: the last `Program:` that a step follows, on its line or below it, whatever bold, quotes or
    fence stand around it, also as the key of a JSON object (text, or a list of steps); else the last run of operations
    in the text, which an empty line ends. A last program that is broken is an error: earlier ones do not count.

    Attributes:
        repair: whether what the benchmark itself would not read, and whose meaning is plain, is mended (`parse`).
    """

    repair: bool = False

    def parse(self, text: str) -> Parsed:
        """The program that `text` gives."""
        plain = text.replace("\\_", "_").replace("\\#", "#")  # as Markdown escapes them
        found = self._labelled(plain) or self._last(plain)
        if isinstance(found, Program):
            return Parsed(str(found))
        why = found.words if found else "no program was found"
        return Parsed(error=f"{why.rstrip('.')}. End with a line such as: Program: {EXAMPLE}")

    def allows(self, action: Action) -> bool:
        """The text of a program."""
        return isinstance(action, str) and isinstance(parse(action), Program)

    def well_formed(self, text: str) -> bool:
        """Whether the program has its label."""
        return _LABEL.search(text) is not None

    def constraint(self) -> Mapping[str, Any]:
        """One line: the label and one to eight steps."""
        value = r"(-?[0-9]{1,12}(\.[0-9]{1,6})?%?|const_(m1|[0-9]{1,10})|#[0-7])"
        step = rf"(({'|'.join(ARITHMETIC)})\({value}, {value}\)|({'|'.join(TABLE)})\([^(),\n]{{1,60}}, none\))"
        return {"regex": f"Program: {step}(, {step}){{0,7}}"}

    def _labelled(self, text: str) -> Program | Problem | None:
        places = [label.end() for label in _LABEL.finditer(text)][-_LABELS:]
        for place in reversed(places):
            window = text[place : place + _WINDOW]
            found = self._json(window) or self._read(window)
            if found is not None:
                return found
        return None

    def _json(self, window: str) -> Program | Problem | None:
        """A program that stands there as a JSON value."""
        try:
            value = _JSON.raw_decode(window.lstrip())[0]
        except (ValueError, RecursionError):
            return None
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            value = ", ".join(value)
        return self._read(value) if isinstance(value, str) else None

    def _read(self, window: str) -> Program | Problem | None:
        """The program at the beginning of `window`; None if no step stands there."""
        wrapping = _WRAPPING.match(window)
        reading = Reading(window, wrapping.end() if wrapping else 0, self.repair)
        if reading.begins() is None:
            return None
        program = reading.program()
        if isinstance(program, Problem):
            return program
        # A step that words part from the program is part of it all the same: better none than half of it.
        rest = window[reading.at :].partition("\n")[0]
        more = _OPERATION.search(rest)
        below = Reading(window, reading.at + len(rest), self.repair).begins()
        if more or below is not None:
            shown = rest[: more.start() if more else None].strip()
            return Problem(f"{shown!r:.60} stands between steps; commas part them")
        return program

    def _last(self, text: str) -> Program | Problem | None:
        """The last run of operations, each run read once."""
        found: Program | Problem | None = None
        at = 0
        while call := _OPERATION.search(text, at):
            reading = Reading(text, self._start(text, at, call.start()), self.repair, blank_lines=False)
            found = reading.program()
            at = max(reading.at, call.end())
        return found

    def _start(self, text: str, after: int, call: int) -> int:
        """Where the step with an operation at `call` begins: before its name, or numbering that begins a line."""
        line = max(after, text.rfind("\n", max(after, call - 60), call) + 1)
        if Reading(text, line, self.repair).begins() == call:
            return line
        named = _NAMED.search(text, max(after, call - 60), call)
        return named.start() if named else call
