"""Search in what agents said: bounded in time and in hits, over the bytes of a journal."""

from __future__ import annotations

import json
import mmap
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .files import no_link

_WINDOW = 1 << 22  # bytes between two looks at the clock


def matching_lines(path: Path, text: str, until: float) -> Iterator[tuple[int, bytes] | None]:
    """(offset, line) of every line with the text somewhere in it, whatever its case; a last None when time is up.

    A line may hold the text where it is no message (a key, say): whoever reads it looks again.

    Args:
        path: a journal.
        text: what to look for.
        until: the time, by `time.monotonic`, at which to stop.
    """
    needle = json.dumps(text)[1:-1].encode("ascii")
    pattern = re.compile(re.escape(needle), re.IGNORECASE)
    with open(path, "rb", opener=no_link) as file:
        size = file.seek(0, 2)
        if not size:
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            at = 0
            while at < size:
                if time.monotonic() > until:
                    yield None
                    return
                end = min(size, at + _WINDOW)
                match = pattern.search(data, at, min(size, end + len(needle)))
                if match is None:
                    at = end
                    continue
                begin = data.rfind(b"\n", 0, match.start()) + 1
                stop = data.find(b"\n", match.end())
                if stop < 0:
                    return  # torn
                yield begin, data[begin : stop + 1]
                at = stop + 1


def snippet(values: Any, text: str, around: int = 80) -> str | None:
    """What stands around the text in the first of the texts (nested in lists and objects) that has it; else None."""
    stack = [values]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            if (match := re.search(re.escape(text), value, re.IGNORECASE)) is not None:
                begin, end = max(0, match.start() - around), match.end() + around
                return ("…" if begin else "") + value[begin:end] + ("…" if end < len(value) else "")
        elif isinstance(value, dict):
            stack += reversed(value.values())
        elif isinstance(value, list):
            stack += reversed(value)
    return None
