"""Keeps what an engine in this process and its child processes print in a file of the run's folder."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import sys
import threading
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TextIO

from harness.api.printable import clean
from harness.storage.files import no_link
from harness.storage.redaction import redacted

_MAX_CHARS = 8_000_000
"""Characters of a log that are searched for a cause."""
_LOGGERS = ("vllm", "transformers", "huggingface_hub", "torch", "tokenizers", "ray")
"""Packages whose loggers write to the console by handlers of their own."""


class _Sink(io.TextIOBase):
    """A stream that outlives the files: it writes to that of an open engine, else to standard error.

    Loggers, and whatever else a library sets up while output is diverted, keep the stream that they saw then.
    """

    encoding = "utf-8"

    def __init__(self) -> None:
        self.files: list[TextIO] = []

    def _target(self) -> TextIO | None:
        return self.files[-1] if self.files else sys.__stderr__ if sys.stderr is self else sys.stderr

    def write(self, text: str) -> int:
        target = self._target()
        return len(text) if target is None else target.write(text)

    def flush(self) -> None:
        if (target := self._target()) is not None:
            target.flush()

    def fileno(self) -> int:
        target = self._target()
        if target is None:
            raise io.UnsupportedOperation("fileno")
        return target.fileno()

    def writable(self) -> bool:
        return True


_sink = _Sink()


class _Fork(io.TextIOBase):
    """Stands for a stream while work in another thread is diverted: what the foreground prints goes where it always
    went, all else to the sink."""

    encoding = "utf-8"

    def __init__(self, stream: TextIO, number: int, copy: int | None, foreground: int) -> None:
        self._stream, self._number, self._copy = stream, number, copy
        self.foreground: int | None = foreground

    def write(self, text: str) -> int:
        if threading.get_ident() != self.foreground:
            return _sink.write(text)
        if self._copy is None or not self._is_diverted():
            self._stream.write(text)
        else:
            os.write(self._copy, clean(text).encode(errors="backslashreplace"))
        return len(text)

    def _is_diverted(self) -> bool:
        """Whether what the stream writes goes to the file now."""
        try:
            return self._stream.fileno() == self._number
        except (OSError, ValueError):
            return False

    def flush(self) -> None:
        (self._stream if threading.get_ident() == self.foreground else _sink).flush()

    def release(self) -> None:
        """The stream leads where it led before."""
        self._copy = self.foreground = None

    def fileno(self) -> int:
        if threading.get_ident() == self.foreground and self._copy is not None:
            return self._copy
        return _sink.fileno()

    def isatty(self) -> bool:
        return threading.get_ident() == self.foreground and self._stream.isatty()

    def writable(self) -> bool:
        return True


class Output:
    """The output of one engine.

    Without a `path` all goes where it always went.

    Attributes:
        path: the file it is appended to; None if no run keeps one.
    """

    def __init__(self) -> None:
        self.path: Path | None = None
        self._file: TextIO | None = None
        self._from = 0
        self._diverting = contextlib.ExitStack()
        self._foreground = threading.get_ident()

    @contextlib.contextmanager
    def diverted(self) -> Iterator[None]:
        """Send to the file what is printed meanwhile: by Python, by libraries, by processes that begin now, for as long
        as they live. Loggers that begin now stay with the file until `close`.

        The streams are those of the whole process, so nothing may be awaited inside; unless this is another thread
        than the one of `begin`, whose own prints then go where they always went.
        """
        if self.path is None:
            yield
            return
        file = self._open(self.path)
        sys.stdout.flush()
        sys.stderr.flush()
        with contextlib.ExitStack() as stack:
            self._diverting = stack
            for number, stream, redirect in (
                (1, sys.stdout, contextlib.redirect_stdout),
                (2, sys.stderr, contextlib.redirect_stderr),
            ):
                stack.callback(_back, number, copy := _copy(number))
                os.dup2(file.fileno(), number)
                elsewhere = threading.get_ident() != self._foreground
                fork = _Fork(stream, number, copy, self._foreground) if elsewhere else None
                stack.enter_context(redirect(fork or _sink))
                if fork is not None:
                    stack.callback(fork.release)
            try:
                yield
            finally:
                _take_over()
                file.flush()

    def restore(self) -> None:
        """End `diverted` from the foreground, where the thread inside it may continue for long: what that still prints
        by Python goes to the file."""
        streams = sys.stdout, sys.stderr
        self._diverting.close()
        for fork in streams:
            if isinstance(fork, _Fork):
                fork.foreground = threading.get_ident()
        sys.stdout, sys.stderr = streams

    def begin(self, title: str) -> None:
        """Write a line that says what begins; causes are looked for behind it."""
        self._foreground = threading.get_ident()
        if self.path is not None:
            file = self._open(self.path)
            file.write(f"--- {title}, {datetime.now().astimezone().isoformat(timespec='seconds')}\n")
            file.flush()
        self.forget()

    def forget(self) -> None:
        """Note that what was printed so far explains nothing that follows."""
        with contextlib.suppress(OSError):
            self._from = self.path.stat().st_size if self.path is not None else 0

    def cause(self) -> str | None:
        """The first exception in what was written since `begin` or `forget`, as one line."""
        if self.path is None:
            return None
        try:
            with self.path.open("rb") as file:
                file.seek(self._from)
                cause = root_cause(file.read(_MAX_CHARS).decode("utf-8", "replace"))
                return None if cause is None else redacted(cause)
        except OSError:
            return None

    def why(self, error: Exception, killed: str | None = None) -> str:
        """The root cause of a failure, in one line: what the file says first, then which process was `killed`, then
        the exception's own words."""
        text = redacted(one_line(str(error))) or type(error).__name__
        return (self.cause() if points_elsewhere(text) else text) or killed or text

    @property
    def place(self) -> str:
        """Where more is to be read, in words."""
        return "" if self.path is None else f"; its output: {self.path}"

    def close(self) -> None:
        """Let the file go; loggers that wrote to it write to another open engine's, or to standard error again."""
        if self._file is not None:
            _sink.files.remove(self._file)
            self._file.close()
            self._file = None

    def _open(self, path: Path) -> TextIO:
        if self._file is None:
            own = no_link(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            self._file = os.fdopen(own, "a", encoding="utf-8", errors="backslashreplace", buffering=1)
            _sink.files.append(self._file)
        return self._file


def _copy(number: int) -> int | None:
    """A copy of a file descriptor; None if it is closed."""
    try:
        return os.dup(number)
    except OSError:
        return None


def _back(number: int, copy: int | None) -> None:
    if copy is None:
        os.close(number)
    else:
        os.dup2(copy, number)
        os.close(copy)


def _take_over() -> None:
    """Lead the handlers to the sink that were there before, set up by an earlier import."""
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger) and name.partition(".")[0] in _LOGGERS:
            for handler in logger.handlers:
                # The command line cleans what is printed: its streams have the console's own behind them.
                stream = getattr(handler, "stream", None)
                own = getattr(stream, "raw", stream) in (sys.__stdout__, sys.__stderr__)
                if type(handler) is logging.StreamHandler and own:
                    handler.setStream(_sink)


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
"""Text around the message of an exception that helps no reader."""


def one_line(text: str, most: int = 300) -> str:
    """A text of any kind as one line of printable characters, without a full stop at its end."""
    plain = _AROUND.sub("", " ".join("".join(c if c.isprintable() else " " for c in text).split())).rstrip(". ")
    return plain if len(plain) <= most else f"{plain[: most - 1].rstrip()}…"
