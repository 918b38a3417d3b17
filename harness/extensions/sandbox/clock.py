"""A clock around code that is not ours where it reads what a model wrote.

A regular expression such as `(a+)+$` takes forever on some texts, and Python cannot stop one: it holds the
interpreter, and no signal reaches it outside the main thread. So such code works in one process beside this one
(`_clock_child.py`), which the system ends when a read takes too long; the next read finds a fresh copy of it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Final

from harness.api.errors import SetupError
from harness.plugins import approvals

SECONDS: Final = 5.0
"""Processor time of one read. Those that end take thousandths of it."""
PATIENCE: Final = 10
"""How many reads of one function may take `SECONDS`; afterwards its bound is 50 times what its longest read took that
ended, and at least `LEAST`."""
LEAST: Final = 0.2
"""Seconds: 10,000 endless replies take half an hour."""
WALL: Final = 600.0
"""Seconds after which a read is ended that uses no processor time: it waits for something, such as a server."""
_SIZE: Final = struct.Struct("<Q")


class UnreadableTextError(Exception):
    """Third-party code did not finish reading a text in time, or ended its process."""


class ClockedFunction:
    """A function of code that is not ours, in another process and under a clock. Threads may share it.

    Args:
        make: "module:function" of a module that can be imported; called in that process, it gives the function. It
            reads no text of a model, and has all the time that it needs.
        arguments: of `make`; they can be pickled.
        warm: arguments of the function that hold no text of a model: what they make it import and load is not counted.
        wall: seconds of one read, of which it may wait the most; None: any number.
    """

    def __init__(
        self, make: str, *arguments: Any, warm: tuple[Any, ...] | None = None, wall: float | None = WALL
    ) -> None:
        self._maker, self._warm, self._wall = (make, arguments), warm, wall
        self._recipes: dict[str, bytes] = {}
        self._slow, self._longest = 0, 0.0

    def __call__(self, *arguments: Any, seconds: float | None = None) -> Any:
        """What the function gives.

        Args:
            arguments: its arguments; they and its result can be pickled.
            seconds: of processor time; None: `SECONDS`.

        Raises:
            UnreadableTextError: it took too long, or ended its process.
            SetupError: the process does not start.
            Exception: what the function, or its making, raises; its cause is the traceback there.
        """
        seconds = SECONDS if seconds is None else seconds
        if self._slow >= PATIENCE:
            seconds = min(seconds, max(LEAST, 50 * self._longest))
        folder = str(Path.cwd())
        if folder not in self._recipes:
            self._recipes[folder] = pickle.dumps((folder, approvals.permissions(), *self._maker, self._warm))
        answer = _PROCESS.ask(self._recipes[folder], (arguments, seconds), self._wall)
        if answer is None:
            self._slow += 1
            raise UnreadableTextError(f"the text is unreadable: {self._maker[0]} was ended after {seconds:g} s")
        worked, value, took = answer
        if not worked:
            error, trace = value
            raise error from _RemoteError(trace)
        self._longest = max(self._longest, took)
        return value


class _RemoteError(Exception):
    """The traceback of the other process, as text."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class _Process:
    """The process: started when first needed, again after it was lost, ended with this one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._numbers: dict[bytes, int] = {}

    def ask(self, recipe: bytes, request: tuple[Any, ...], wall: float | None) -> Any:
        """(True, what the function gave, seconds) or (False, (error, traceback), 0); None: it was ended."""
        with self._lock:
            try:
                self._start()
                if recipe not in self._numbers:
                    self._send(b"M", recipe)
                    answer = self._receive(None)
                    if answer is None or not answer[0]:
                        return answer
                    self._numbers[recipe] = answer[1]
                self._send(b"R", pickle.dumps((self._numbers[recipe], *request)))
                return self._receive(wall)
            except OSError:
                self._end()
                return None
            except BaseException:  # the caller is gone: an answer that comes now would be taken for the next one's
                self._end()
                raise

    def close(self) -> None:
        with self._lock:
            self._end()

    def _start(self) -> None:
        if self._owner != os.getpid():  # a fork has the parent's process, which it must not talk to
            self._process, self._owner = None, os.getpid()
        process = self._process
        if process is not None and process.poll() is None and not self._readable(0):
            return
        self._end()
        if not hasattr(os, "fork"):
            raise SetupError("reading replies with the code of packages needs a POSIX system", hint="Use Linux.")
        self._numbers = {}
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).with_name("_clock_child.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,  # ended as a group; Ctrl-C is for this process
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )

    def _send(self, kind: bytes, body: bytes) -> None:
        assert self._process is not None and self._process.stdin is not None
        rest = memoryview(kind + _SIZE.pack(len(body)) + body)
        while rest:
            rest = rest[self._process.stdin.write(rest) or 0 :]

    def _receive(self, wall: float | None) -> Any:
        if not self._readable(wall):
            self._end()
            return None
        assert self._process is not None and self._process.stdout is not None
        head = self._exactly(_SIZE.size)
        body = self._exactly(*_SIZE.unpack(head)) if len(head) == _SIZE.size else b""
        if not body:  # all of it was ended
            self._end()
            return None
        return pickle.loads(body)

    def _exactly(self, size: int) -> bytes:
        assert self._process is not None and self._process.stdout is not None
        parts = bytearray()
        while len(parts) < size and (part := self._process.stdout.read(min(size - len(parts), 1 << 20))):
            parts += part
        return bytes(parts)

    def _readable(self, wall: float | None) -> bool:
        assert self._process is not None and self._process.stdout is not None
        poll = select.poll()
        poll.register(self._process.stdout, select.POLLIN)
        return bool(poll.poll(None if wall is None else wall * 1000))

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()


_PROCESS = _Process()
atexit.register(_PROCESS.close)
