"""Ends the processes that an engine started once their parent is gone, however it died."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from multiprocessing.process import BaseProcess

_REAPER = """
import os, select, signal, sys
left = set()
for line in sys.stdin.buffer:  # ends when no process holds the other end
    try:
        left.add(os.pidfd_open(int(line)))  # holds on to this very process: its number may be given again
    except OSError:
        pass  # it has ended, or this system does not let it be watched
poll = select.poll()
for fd in left:
    poll.register(fd, select.POLLIN)
for number, milliseconds in ((0, 0), (signal.SIGTERM, 10_000), (signal.SIGKILL, 10_000)):
    for fd in left:
        try:
            signal.pidfd_send_signal(fd, number)
        except ProcessLookupError:
            pass
    while left and (ended := poll.poll(milliseconds)):
        for fd, _ in ended:
            poll.unregister(fd)
            left.remove(fd)
"""


_SWEEPER = """
import os, signal, sys, time
sys.stdin.buffer.read(1)  # ends when no process holds the other end
mark = sys.argv[1].encode()

def left():
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            process = os.pidfd_open(int(name))  # before it is looked at: its number may be given again
        except OSError:
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as environment:
                if mark in environment.read():
                    yield process
        except OSError:
            pass
        finally:
            os.close(process)

for number, seconds in ((signal.SIGTERM, 1), (signal.SIGKILL, 10)):
    end, some = time.monotonic() + seconds, True
    while some and time.monotonic() < end:
        some = False
        for process in left():
            some = True
            try:
                signal.pidfd_send_signal(process, number)
            except OSError:
                pass
        time.sleep(0.01 if some else 0)
"""


class ChildReaper:
    """A small process that outlives this one and then ends its children: SIGTERM first, SIGKILL ten seconds later.

    A killed process cannot end its children. An engine's would run on and keep the accelerator's memory, which the next
    start needs. Does nothing where the system has no process handles (Linux has).
    """

    _script = _REAPER

    def __init__(self, *arguments: str) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._kills = False
        self._children: list[BaseProcess] = []
        _reapers.add(self)
        if hasattr(os, "pidfd_open"):
            command = [sys.executable, "-I", "-S", "-c", self._script, *arguments]
            nowhere = subprocess.DEVNULL
            # A session of its own: Ctrl-C goes to this process and not to that one.
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, start_new_session=True
            )

    def add(self, process: int) -> None:
        """Include a process, by its id."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.write(b"%d\n" % process)
                self._process.stdin.flush()

    @contextlib.contextmanager
    def over_children(self) -> Iterator[list[BaseProcess]]:
        """Include every process that `multiprocessing` starts in this block, as soon as it exists; gives their list."""
        earlier, ended = set(multiprocessing.active_children()), threading.Event()
        children = self._children

        def look() -> None:
            for child in set(multiprocessing.active_children()) - earlier.union(children):
                children.append(child)
                self.add(child.pid or 0)
            if self._kills:
                self.kill()

        def keep_looking() -> None:
            while not ended.wait(0.1):
                look()

        thread = threading.Thread(target=keep_looking, name="children", daemon=True)
        thread.start()
        try:
            yield children
        finally:
            ended.set()
            thread.join()
            look()

    def kill(self) -> None:
        """Kill the processes of `over_children`, those that exist and those that begin from now on, without waiting."""
        self._kills = True
        for child in list(self._children):
            with contextlib.suppress(ValueError):  # it is closed
                child.kill()

    def close(self) -> None:
        """End the processes that still run; returns once none does. May be called twice."""
        process = self._let_go()
        if process is not None:
            try:
                process.wait(30)  # it takes 20 seconds at most, if it runs
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _let_go(self) -> subprocess.Popen[bytes] | None:
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        return process


class MarkedReaper(ChildReaper):
    """Ends every process that has a mark in its environment when this process is gone or `close` is called.

    This includes processes that an agent has started, in whatever session, unless they cleared their environment.
    SIGTERM first, SIGKILL a second later. Needs Linux's /proc.

    Args:
        mark: a text that no other environment holds.
    """

    _script = _SWEEPER

    def __init__(self, mark: str) -> None:
        super().__init__(mark)


_reapers: weakref.WeakSet[ChildReaper] = weakref.WeakSet()


def _forked() -> None:
    """Close the other end of a reaper's pipe in a fork of this process (engines fork): only the parent may hold it."""
    for reaper in list(_reapers):
        process = reaper._let_go()
        if process is not None:
            process.returncode = 0  # no child of the fork


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
