"""The one way to the screen: all that is printed is cleaned before it reaches stdout or stderr."""

from __future__ import annotations

import io
import os
import shutil
import sys
import warnings
from collections.abc import Iterable
from typing import Any, TextIO, cast

from harness.api.printable import clean


class CleanStream:
    """A stream whose texts are cleaned (`harness.api.printable.clean`); in all else the stream behind it."""

    def __init__(self, stream: TextIO) -> None:
        self.raw = stream

    def write(self, text: str) -> int:
        """Write the cleaned text; returns the length of what was to be written."""
        self.raw.write(clean(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


def terminal_width() -> int:
    """How many columns there are to print in: those of the terminal, or what COLUMNS says; else `WIDTH`."""
    return max(shutil.get_terminal_size((WIDTH, 24)).columns, MIN_COLUMNS)


WIDTH = 100
"""Columns of what is printed to no terminal: a file, a pipe."""
MIN_COLUMNS = 24
"""Columns that a table needs."""


def raw(stream: TextIO) -> TextIO:
    """The stream behind it, for a progress bar, which moves the cursor and must clean its texts itself."""
    return stream.raw if isinstance(stream, CleanStream) else stream


def clean_streams() -> None:
    """Clean what is printed from now on, and let nothing that is printed raise: on a terminal without "±", or with
    its streams closed (`>&-`). That lasts as long as the process: a traceback comes last.
    """
    sys.stdout, sys.stderr = _usable(sys.stdout), _usable(sys.stderr)
    warnings.showwarning = _show_warning


def _usable(stream: TextIO | None) -> TextIO:
    if stream is None:
        return open(os.devnull, "w")  # noqa: PTH123 - open as long as the process
    if isinstance(stream, CleanStream):
        return stream
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return cast("TextIO", CleanStream(stream))


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"warning: {message}", file=sys.stderr)
