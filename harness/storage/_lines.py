"""Lines of journals and files of a run's folder, as an index meets them again."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import IO

from harness.errors import DataError

from .journal import Line, is_intact

LONGEST = 1 << 28
"""Bytes of one line."""
_decode = json.JSONDecoder().decode
CHECKED = 4096
"""Bytes at the start, and before the end of what was read, by which a journal is known again."""


def checks(file: IO[bytes], size: int) -> tuple[int, int]:
    """Checksums of the first bytes, and of the last ones before `size`."""
    file.seek(0)
    head = zlib.crc32(file.read(min(size, CHECKED)))
    file.seek(max(0, size - CHECKED))
    return head, zlib.crc32(file.read(min(size, CHECKED)))


def sealed_line(raw: bytes) -> Line:
    """A line of a journal. Raises `ValueError` in words for one that is not as it was written."""
    if not raw.endswith(b"\n"):
        raise ValueError("the line is too long")
    if not is_intact(raw):
        raise ValueError("the line is not as it was written (its checksum differs)")
    line = _decode(raw.decode())  # `json.loads` looks for the encoding first, in every line
    if not isinstance(line, dict):
        raise ValueError("not a JSON object")
    return line


def line_at(file: IO[bytes], offset: int, path: Path) -> Line:
    file.seek(offset)
    try:
        return sealed_line(file.readline(LONGEST))
    except (ValueError, RecursionError):
        raise DataError(f"{path} is not as it was when it was indexed", hint="Open the run again.") from None


def file_name(name: str) -> str:
    """The name of a file in the run's folder, whatever an index says. Raises `ValueError`."""
    if Path(name).name != name:
        raise ValueError(f"not the name of a file: {name!r:.80}")
    return name


def stamp(path: Path) -> str:
    """What changes when a file is replaced; empty where there is none."""
    try:
        there = path.stat()
    except OSError:
        return ""
    return f"{there.st_mtime_ns} {there.st_size}"


def reason(error: BaseException) -> str:
    if isinstance(error, ValueError | DataError) and not isinstance(error, json.JSONDecodeError | UnicodeError):
        return str(error)[:200]
    return f"not a line of a journal: {type(error).__name__}: {error}"[:200]
