"""The terminal at which people answer: one question at a time, and nothing that is shown can drive it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from harness.api.printable import clean
from harness.engines.priority import PriorityGate

QUOTES = '"""'
"""Begins and ends an answer of several lines."""
HELP = (
    f"Enter sends an answer; {QUOTES} begins and ends one of several lines. "
    "Ctrl-C stops the run; the same command resumes it."
)
_BOLD, _PLAIN, _NO_PASTE = b"\x1b[1m", b"\x1b[0m", b"\x1b[?2004l"
_CLEAR = b"\x1b[H\x1b[2J\x1b[3J"  # the screen, and what can be scrolled back to
_terminals: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, SharedTerminal] = weakref.WeakKeyDictionary()
_reading: Future[str | None] | None = None  # a question that was given up still waits for its line


class SharedTerminal:
    """The keyboard and the screen of this process, which all people in a run share.

    What is asked goes to standard error: standard output is for tables.
    """

    def __init__(self) -> None:
        self._queue = PriorityGate(lambda asked: asked < 1)
        self._who: str | None = None
        self._unread = False  # whether what all may read is on the screen
        self._ended: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        self._users = 0
        self._before: list[Any] | None = None

    @classmethod
    def here(cls) -> SharedTerminal:
        """The one of the running event loop."""
        return _terminals.setdefault(asyncio.get_running_loop(), cls())

    def open(self) -> None:
        """One more person uses it."""
        self._users += 1
        if self._users == 1 and is_terminal():
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401 - `input` then has a line that can be edited
                import termios

                self._before = termios.tcgetattr(sys.stdin.fileno())

    def close(self) -> None:
        """One person less; the last one leaves the terminal as it was, also in the middle of a line."""
        self._users -= 1
        if not self._users and self._before is not None:
            import termios

            termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, self._before)
            if _reading is not None and not _reading.done() and sys.stdout.isatty():
                _raw(sys.stdout, _NO_PASTE + b"\n")

    async def enter(self, age: int) -> None:
        """Wait until no other question is asked; `leave` must follow."""
        await self._queue.enter(age)

    def leave(self) -> None:
        """The next one may be asked."""
        self._queue.leave()

    def check(self) -> None:
        """Raise the reason of `end`."""
        if self._ended.done():
            raise self._ended.result()

    def end(self, reason: Exception) -> None:
        """Raise `reason` where an answer is waited for, now or later."""
        if not self._ended.done():
            self._ended.set_result(reason)

    # ------------------------------------------------------------------------------ what a person sees and writes

    def say(self, text: str, bold: bool = False) -> None:
        """A line."""
        stream = sys.stderr
        marked = bold and stream.isatty()
        if marked:
            _raw(stream, _BOLD)
        stream.write(clean(text))
        stream.flush()
        if marked:
            _raw(stream, _PLAIN)
        stream.write("\n")
        stream.flush()

    async def seat(self, person: str, agent: str) -> None:
        """Hand the keyboard to a person, and hide what the previous one has read. Raises `KeyboardInterrupt` on
        Ctrl-D."""
        if self._who is None:
            self.say(HELP)
        # After a pause nobody knows who sits there, and behind what all have read somebody else may.
        if (self._who != person or self._unread) and self._users > 1:
            if self._unread:
                await self._enter("Enter when all have read this: ")
            if self._who is not None:
                self.forget()
            self.say(f"Hand the keyboard to {person}, who plays {agent}.", bold=True)
            await self._enter("Enter when you are there: ")
        self._who, self._unread = person, False

    def forget(self) -> None:
        """Clear the screen, what can be scrolled back to, and the answers that the arrow keys bring back."""
        if is_terminal() and sys.stderr.isatty():
            _raw(sys.stderr, _CLEAR)
        if "readline" in sys.modules:
            sys.modules["readline"].clear_history()

    def show(self, title: str, parts: Sequence[tuple[str, str]]) -> None:
        """Show all people (heading, text) pairs; what one of several people has read for itself is cleared."""
        if self._users > 1:
            self.forget()
        self.say(f"\n=== {title} ===", bold=True)
        for heading, text in parts:
            self.say(f"--- {heading}", bold=True)
            self.say(text)
        self._unread = True

    async def _enter(self, prompt: str) -> None:
        if is_terminal() and await self._line(prompt) is None:
            raise KeyboardInterrupt

    async def answer(self, prompt: str) -> str | None:
        """What the person writes; None: the input has ended."""
        line = await self._line(prompt)
        if line is None or not line.lstrip().startswith(QUOTES):
            return line
        lines = [line.lstrip()[len(QUOTES) :]]
        while not lines[-1].rstrip().endswith(QUOTES):
            line = await self._line("… ")
            if line is None:
                return None
            lines.append(line)
        lines[-1] = lines[-1].rstrip().removesuffix(QUOTES)
        return "\n".join(lines).strip("\n")

    async def _line(self, prompt: str) -> str | None:
        global _reading
        if _reading is None or _reading.done():
            _reading = Future()
            threading.Thread(target=_read, args=(clean(prompt), _reading), daemon=True).start()
        reading = asyncio.wrap_future(_reading)
        either: set[asyncio.Future[Any]] = {reading, self._ended}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not reading.done():
            raise self._ended.result()
        return reading.result()


def can_read() -> bool:
    """Whether there is anything to read from."""
    return sys.stdin is not None and not sys.stdin.closed


def is_terminal() -> bool:
    """Whether a person sits there, and no file or program."""
    return can_read() and sys.stdin.isatty()


def _read(prompt: str, line: Future[str | None]) -> None:
    """Read a line, in a thread of its own: nothing can end a read, and a daemon need not end."""
    line.set_running_or_notify_cancel()
    try:
        if is_terminal() and sys.stdout.isatty():
            line.set_result(input(prompt))
            return
        sys.stderr.write(prompt)
        sys.stderr.flush()
        text = sys.stdin.readline()
        if not is_terminal():  # which would show what is typed
            sys.stderr.write(clean(text.removesuffix("\n")) + "\n")
        line.set_result(text.removesuffix("\n") if text else None)
    except EOFError:
        line.set_result(None)
    except Exception as error:
        line.set_exception(error)


def _raw(stream: Any, codes: bytes) -> None:
    stream.flush()
    os.write(stream.fileno(), codes)
