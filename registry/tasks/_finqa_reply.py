"""Finds the FinQA program in a reply."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.api import Action, Parsed, Reply, ReplyField
from harness.replies import strip_reasoning

from ._finqa_text import ARITHMETIC, EXAMPLE, OPERATIONS, TABLE, Problem, Program, Reading, parse

_LABEL = re.compile(r"(?<!\w)program[ \t]{0,3}[*_`\"']{0,4}[ \t]{0,3}[:：=][ \t*_`]{0,6}", re.IGNORECASE)
_LABELS = 50
"""How many labels are tried, from the last one back. This bounds the time."""
_WINDOW = 6_000
"""How many characters after a label are read; more than `MAX_STEPS` steps need."""
_WRAPPING = re.compile(r"(?:\s|```+[\w+-]{0,20}|[*_`\"'“”\[])*+")
_OPERATION = re.compile(rf"(?<![\w#])(?:{'|'.join(OPERATIONS)})\s{{0,3}}\(", re.IGNORECASE)
_NAME_BEFORE = re.compile(r"(?<!\w)(?:#[0-9]{1,3}|[A-Za-z_]\w{0,40})\s{0,3}=\s{0,3}\Z")
_JSON = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class ProgramReply(Reply):
    """A reply that ends in a FinQA program. The action is the program as text, in the benchmark's own form.

    The program is read from the last label `Program:` with a step after it, on its line or below, with or without bold,
    quotes or a fence, also as the key of a JSON object (a text, or a list of steps). Without a label it is the last run
    of operations in the text, up to an empty line. If the last program is broken, the reply is unreadable: earlier
    programs do not count.
    """

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The program."""
        return (ReplyField("program", "Program:"),)

    @property
    def examples(self) -> tuple[Action, ...]:
        """Programs of one and two steps."""
        return ("add(1, 2)", "subtract(10, 4), divide(#0, const_100)")

    def parse(self, text: str) -> Parsed:
        """Parse the program in `text`."""
        plain = strip_reasoning(text).replace("\\_", "_").replace("\\#", "#")  # as Markdown escapes them
        result = self._labelled(plain) or self._last(plain)
        if isinstance(result, Program):
            return Parsed(str(result))
        reason = result.words if result else "no program was found"
        return Parsed(error=f"{reason.rstrip('.')}. End with a line such as: Program: {EXAMPLE}")

    def allows(self, action: Action) -> bool:
        """Whether the action is the text of a program."""
        return isinstance(action, str) and isinstance(parse(action), Program)

    def well_formed(self, text: str) -> bool:
        """Whether the program has its label."""
        return _LABEL.search(strip_reasoning(text)) is not None

    def constraint(self) -> Mapping[str, Any]:
        """A regular expression of one line: the label and one to eight steps."""
        value = r"(-?[0-9]{1,12}(\.[0-9]{1,6})?%?|const_(m1|[0-9]{1,10})|#[0-7])"
        step = rf"(({'|'.join(ARITHMETIC)})\({value}, {value}\)|({'|'.join(TABLE)})\([^(),\n]{{1,60}}, none\))"
        return {"regex": f"Program: {step}(, {step}){{0,7}}"}

    def _labelled(self, text: str) -> Program | Problem | None:
        places = [label.end() for label in _LABEL.finditer(text)][-_LABELS:]
        for place in reversed(places):
            window = text[place : place + _WINDOW]
            result = self._json(window) or self._read(window)
            if result is not None:
                return result
        return None

    def _json(self, window: str) -> Program | Problem | None:
        """Read a program that is a JSON value."""
        try:
            value = _JSON.raw_decode(window.lstrip())[0]
        except (ValueError, RecursionError):
            return None
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            value = ", ".join(value)
        return self._read(value) if isinstance(value, str) else None

    def _read(self, window: str) -> Program | Problem | None:
        """Read the program at the beginning of `window`; None if there is no step."""
        wrapping = _WRAPPING.match(window)
        reading = Reading(window, wrapping.end() if wrapping else 0)
        if reading.step_start() is None:
            return None
        program = reading.program()
        if isinstance(program, Problem):
            return program
        # A later step after other words belongs to the program too: better no program than half of it.
        rest = window[reading.at :].partition("\n")[0]
        later_call = _OPERATION.search(rest)
        next_step = Reading(window, reading.at + len(rest)).step_start()
        if later_call or next_step is not None:
            between = rest[: later_call.start() if later_call else None].strip()
            return Problem(f"{between!r:.60} stands between steps; commas part them")
        return program

    def _last(self, text: str) -> Program | Problem | None:
        """Read the last run of operations. Each run is read once."""
        result: Program | Problem | None = None
        at = 0
        while call := _OPERATION.search(text, at):
            reading = Reading(text, self._start(text, at, call.start()), blank_lines=False)
            result = reading.program()
            at = max(reading.at, call.end())
        return result

    def _start(self, text: str, after: int, call: int) -> int:
        """Return where the step with its operation at `call` starts: before its name, or before numbering."""
        line = max(after, text.rfind("\n", max(after, call - 60), call) + 1)
        if Reading(text, line).step_start() == call:
            return line
        name = _NAME_BEFORE.search(text, max(after, call - 60), call)
        return name.start() if name else call
