"""What the user's own agents print goes to the run's log, bounded, and never between the tables of the harness."""

from __future__ import annotations

import contextlib
import contextvars
import io
import os
import sys
import threading
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from harness.extensions.endpoints.keys import without_keys
from harness.storage.files import no_link

MAX_CHARS = 10_000_000
"""Characters that the agents of one process may add to a log; a flood would fill the disk."""


class AgentLog:
    """The log of one engine.

    Args:
        path: the file it is appended to; None: standard error, where no run keeps a log.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._file: TextIO | None = None
        if path is not None:
            own = no_link(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            self._file = os.fdopen(own, "a", encoding="utf-8", errors="backslashreplace", buffering=1)
        self._room = MAX_CHARS
        self._lock = threading.Lock()

    def begin(self, title: str) -> None:
        """Write a line that says what begins."""
        if self._file is not None:
            self.write(f"--- {title}, {datetime.now().astimezone().isoformat(timespec='seconds')}\n")

    def write(self, text: str) -> None:
        """Append; what is too much is left out. Raises nothing: a full disk ends the run elsewhere."""
        text = without_keys(text)
        with self._lock, contextlib.suppress(OSError, ValueError):
            target = self._file or sys.__stderr__
            if target is None or self._room <= 0:
                return
            target.write(text[: self._room])
            self._room -= len(text)
            if self._room <= 0:
                target.write(f"\n--- the rest is left out: more than {MAX_CHARS:,} characters\n")

    @contextlib.contextmanager
    def diverted(self) -> Iterator[None]:
        """Take what this context prints, and what is copied from it: tasks, and threads that copy it."""
        if self._file is None:
            yield
            return
        token = _log.set(self)
        try:
            yield
        finally:
            _log.reset(token)

    def open(self) -> None:
        """From now on prints of diverted contexts come here."""
        if self._file is not None:
            _Router.install()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            _Router.remove()
            with self._lock, contextlib.suppress(OSError):
                self._file.close()


_log: contextvars.ContextVar[AgentLog | None] = contextvars.ContextVar("agent_log", default=None)


class _Router(io.TextIOBase):
    """Stands before a stream: what a diverted context writes goes to its log."""

    _users = 0
    _installed: tuple[_Router, ...] = ()

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    @classmethod
    def install(cls) -> None:
        cls._users += 1
        if cls._users == 1:
            cls._installed = cls(sys.stdout), cls(sys.stderr)
            sys.stdout, sys.stderr = cls._installed

    @classmethod
    def remove(cls) -> None:
        cls._users -= 1
        if cls._users == 0:
            out, err = cls._installed
            if sys.stdout is out:
                sys.stdout = out.stream
            if sys.stderr is err:
                sys.stderr = err.stream

    def write(self, text: str) -> int:
        log = _log.get()
        if log is None:
            return self.stream.write(text)
        log.write(text)
        return len(text)

    def flush(self) -> None:
        self.stream.flush()

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return _log.get() is None and self.stream.isatty()

    def fileno(self) -> int:
        return self.stream.fileno()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
