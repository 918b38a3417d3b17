"""Search in what agents said: bounded in time, over the bytes of a journal."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.storage.files import no_link

_BLOCK = 1 << 22  # bytes between two looks at the clock


def matching_lines(path: Path, text: str, until: float) -> Iterator[tuple[int, bytes] | None]:
    """(offset, line) of every line with the text somewhere in it, in any case; None at the end if the time is up.

    A line may hold the text where it is not a message (in a name, say): readers look again (`snippet`).

    Args:
        path: a journal.
        text: what to look for.
        until: the time, by `time.monotonic`, at which to stop.
    """
    # In ASCII, as journals are: É and é are escapes that differ, so all forms of the text are looked for.
    forms = (text, text.lower(), text.upper(), text.title(), text.capitalize())
    needles = {json.dumps(form)[1:-1].lower().encode("ascii") for form in forms}
    with open(path, "rb", opener=no_link) as file:
        rest, offset = b"", 0
        while block := file.read(_BLOCK):
            if time.monotonic() > until:
                yield None
                return
            block = rest + block
            whole = block.rfind(b"\n") + 1
            lowered = block[:whole].lower()
            for begin, end in _lines_with(lowered, needles):
                yield offset + begin, block[begin:end]
            rest, offset = block[whole:], offset + whole


def _lines_with(lowered: bytes, needles: set[bytes]) -> Iterator[tuple[int, int]]:
    """(begin, end) of the lines that hold a needle."""
    at = 0
    while found := [place for needle in needles if (place := lowered.find(needle, at)) >= 0]:
        begin = lowered.rfind(b"\n", 0, min(found)) + 1
        at = lowered.find(b"\n", min(found)) + 1
        yield begin, at


def snippet(values: Any, text: str, around: int = 80) -> str | None:
    """What is around the text in the first of the texts (nested in lists and objects) that has it; else None."""
    stack = [values]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            if (match := re.search(re.escape(text), value, re.IGNORECASE)) is not None:
                begin, end = max(0, match.start() - around), match.end() + around
                return ("…" if begin else "") + value[begin:end] + ("…" if end < len(value) else "")
        elif isinstance(value, dict):
            stack += reversed(list(value.values()))
        elif isinstance(value, list):
            stack += reversed(value)
    return None
