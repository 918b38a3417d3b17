"""Lines of journals, as an index meets them again, and what may go wrong with that, in words."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO

from harness.api.errors import DataError
from harness.storage.files import no_link
from harness.storage.journal import Line, is_intact

MAX_LINE_BYTES = 1 << 28
"""Bytes of one line."""
_decode = json.JSONDecoder().decode
FILES = 1 << 12
"""Journals of a run; a place in an index is offset · FILES + number of the journal."""
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
        return sealed_line(file.readline(MAX_LINE_BYTES))
    except (ValueError, RecursionError):
        raise DataError(f"{path} is not as it was when it was indexed", hint="Start the viewer again.") from None


def stamp(path: Path) -> str:
    """What changes when a file is replaced; empty if there is none."""
    try:
        there = path.stat()
    except OSError:
        return ""
    return f"{there.st_mtime_ns} {there.st_size}"


def reason(error: BaseException) -> str:
    if isinstance(error, ValueError | DataError) and not isinstance(error, json.JSONDecodeError | UnicodeError):
        return str(error)[:200]
    return f"not a line of a journal: {type(error).__name__}: {error}"[:200]


def lines_at(folder: Path, journals: Mapping[int, str], places: Iterable[int]) -> Iterator[Line]:
    """The lines at places that an index gave, for a process that has no index.

    Args:
        folder: the run's folder.
        journals: `IndexedEpisode.journals`.
        places: of the lines.

    Raises:
        DataError: a line is not as it was written.
    """
    with contextlib.ExitStack() as stack, as_data_error(folder):
        files: dict[int, IO[bytes]] = {}
        for place in places:
            offset, number = divmod(place, FILES)
            path = folder / journals[number]
            if number not in files:
                files[number] = stack.enter_context(open(path, "rb", opener=no_link))
            yield line_at(files[number], offset, path)


@contextlib.contextmanager
def as_data_error(folder: Path) -> Iterator[None]:
    """What the disk, SQLite or lines of a strange shape raise, as one line."""
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot read the run in {folder}: {error.strerror or error}") from None
    except (sqlite3.Error, KeyError, IndexError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise DataError(f"cannot read the run in {folder}: {error}") from None
