"""What an engine of this process and its own processes print, kept in a file of the run's folder."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from harness.storage.files import no_link
from harness.storage.redaction import redacted

LOG = "engine.log"
"""The file's name in a run's folder."""

_MOST = 8_000_000
"""Characters of a log that are searched for a cause."""
_LOGGERS = ("vllm", "transformers", "huggingface_hub", "torch", "tokenizers", "ray")
"""Packages whose loggers write to the console by handlers of their own."""

_files: list[TextIO] = []
"""Those of the engines that are open."""


class Output:
    """The output of one engine.

    Several may be open at once. Handlers of loggers write to one file only, that of the engine that opened first; when
    it closes they go on with another's.

    Without a `path` all goes where it always went.

    Attributes:
        path: the file it is appended to; None where no run keeps one.
    """

    def __init__(self) -> None:
        self.path: Path | None = None
        self._file: TextIO | None = None
        self._from = 0

    @contextlib.contextmanager
    def diverted(self) -> Iterator[None]:
        """Send to the file what is printed meanwhile: by Python, by libraries, by processes that begin now, for as long
        as they live. Loggers that begin now stay with the file until `close`.

        Nothing may be awaited inside: the streams are those of the whole process.
        """
        if self.path is None:
            yield
            return
        file, console = self._open(self.path), (sys.stdout, sys.stderr)
        with contextlib.ExitStack() as stack:
            for number, stream in enumerate(console, 1):
                stream.flush()
                stack.callback(os.close, copy := os.dup(number))
                stack.callback(os.dup2, copy, number)
                os.dup2(file.fileno(), number)
            stack.enter_context(contextlib.redirect_stdout(file))
            stack.enter_context(contextlib.redirect_stderr(file))
            try:
                yield
            finally:
                before = (*console, sys.__stdout__, sys.__stderr__)
                for package, handler in _handlers():
                    if package in _LOGGERS and handler.stream in before:
                        handler.setStream(file)
                file.flush()

    def begin(self, title: str) -> None:
        """Write a line that says what begins; causes are looked for behind it."""
        if self.path is not None:
            file = self._open(self.path)
            file.write(f"--- {title}, {datetime.now().astimezone().isoformat(timespec='seconds')}\n")
            file.flush()
        self.forget()

    def forget(self) -> None:
        """What stands there so far explains nothing that comes."""
        with contextlib.suppress(OSError):
            self._from = self.path.stat().st_size if self.path is not None else 0

    def cause(self) -> str | None:
        """The first exception in what was written since `begin` or `forget`, as one line."""
        if self.path is None:
            return None
        try:
            with self.path.open("rb") as file:
                file.seek(self._from)
                cause = root_cause(file.read(_MOST).decode("utf-8", "replace"))
                return None if cause is None else redacted(cause)
        except OSError:
            return None

    def close(self) -> None:
        """Let the file go; loggers that wrote to it write to another open engine's, or to standard error again."""
        if self._file is not None:
            _files.remove(self._file)
            for _, handler in _handlers():  # of every logger: a library may have configured the root logger
                if handler.stream is self._file:
                    handler.setStream(_files[0] if _files else sys.stderr)
            self._file.close()
            self._file = None

    def _open(self, path: Path) -> TextIO:
        if self._file is None:
            own = no_link(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            self._file = os.fdopen(own, "a", encoding="utf-8", errors="backslashreplace", buffering=1)
            _files.append(self._file)
        return self._file


def _handlers() -> Iterator[tuple[str, logging.StreamHandler[Any]]]:
    """Every logger's plain handlers that write to a stream, with the name of the logger's package."""
    for logger in (logging.root, *logging.root.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            for handler in logger.handlers:
                if type(handler) is logging.StreamHandler:
                    yield logger.name.partition(".")[0], handler


# ---------------------------------------------------------------------------------- why it failed

_PREFIX = re.compile(r"(?P<process>\([^()]*pid=\d+\) ?)?(?:[A-Z]+ \d\d-\d\d \d\d:\d\d:\d\d (?:\S*\[[^\]]*\] ?)?)?")
_EXCEPTION = re.compile(r"(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<text>.*))?$")
_ELSEWHERE = re.compile(
    r"root cause|stack ?trace|background process|EngineDead|EngineCore encountered|cancelled|KeyboardInterrupt", re.I
)
"""Exceptions that only say that there was another one, in another process."""
_DIED = re.compile(r"(?:Worker proc )?(\S+) died unexpectedly")
_PLAIN = ("Exception", "RuntimeError", "ValueError", "AssertionError", "OSError")
"""Kinds that say nothing beside their text."""


def points_elsewhere(text: str) -> bool:
    """Whether an exception's text only says that there was another one."""
    return bool(_ELSEWHERE.search(text))


def root_cause(log: str) -> str | None:
    """The first exception that a log's tracebacks show, as one line: `ValueError: …`, or its text alone.

    Processes may write at the same time: vLLM's lines begin with the one they are from, and each is read by itself. Of
    exceptions that raised one another Python prints the first one first. Those that only point to another are not it.
    A process that was killed says nothing: there the one that misses it does.
    """
    inside: dict[str | None, list[str] | None] = {}  # of each process: the exception being read; [] in a traceback
    for line in log.splitlines():
        prefix = _PREFIX.match(line)
        process = prefix["process"] if prefix else None
        text = line[prefix.end() if prefix else 0 :]
        lines = inside.get(process)
        if text.startswith("Traceback (most recent call last)"):
            if lines and (cause := _in_words(lines)):
                return cause
            inside[process] = []
        elif lines is None:
            if (death := _DIED.match(text)) and not any(inside.values()):
                return f"the process {death[1]} died unexpectedly"
        elif not lines:
            if text and not text.startswith((" ", "|", "+")) and _EXCEPTION.match(text):
                lines.append(text)
        elif text.strip() and len(lines) < 8:
            lines.append(text)
        else:
            if cause := _in_words(lines):
                return cause
            inside[process] = None
    return next((cause for lines in inside.values() if lines and (cause := _in_words(lines))), None)


def _in_words(lines: list[str]) -> str | None:
    """The exception as one line; None if it points to another one."""
    first = _EXCEPTION.match(lines[0])
    if first is None or points_elsewhere(lines[0]):
        return None
    kind = first["kind"].rpartition(".")[2]
    text = one_line(" ".join([first["text"] or "", *lines[1:]]))
    return text if kind in _PLAIN and text else f"{kind}: {text}" if text else kind


_AROUND = re.compile(
    r"^\d+ validation errors? for \w+ (?:Value error, )?|^Value error, | \[type=[^\]]*\]"
    r"| For further information visit \S+| For information about .* see the documentation at \S+"
)
"""What stands around the words of an exception and helps no reader."""


def one_line(text: str, most: int = 300) -> str:
    """A text of any kind as one line of printable characters, without a full stop at its end."""
    plain = _AROUND.sub("", " ".join("".join(c if c.isprintable() else " " for c in text).split())).rstrip(". ")
    return plain if len(plain) <= most else f"{plain[: most - 1].rstrip()}…"
