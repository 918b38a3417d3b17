"""Ends the processes that an engine has started when the one that started them is gone, however it died."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator

_WATCH = """
import os, select, signal, sys
left = set()
for line in sys.stdin.buffer:  # ends with who holds the other end
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


_PATIENCE = 30.0
"""Seconds to wait for a watch to have ended everything; it takes 20 at most itself."""


class Watch:
    """A small process that outlives this one and then ends others: first asks them to, after ten seconds kills them.

    A process that is killed cannot end its children, and vLLM's go on without it, with the accelerator's memory, which
    the same command needs to go on. Does nothing where the system knows no handles of processes (Linux does).
    """

    def __init__(self) -> None:
        self._watch: subprocess.Popen[bytes] | None = None
        _watches.add(self)
        if hasattr(os, "pidfd_open"):
            command = [sys.executable, "-I", "-S", "-c", _WATCH]
            nowhere = subprocess.DEVNULL
            # A session of its own: Ctrl-C goes to this process and not to that one.
            self._watch = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, start_new_session=True
            )

    def add(self, process: int) -> None:
        """Watch over a process, by its number."""
        if self._watch is not None and self._watch.stdin is not None:
            with contextlib.suppress(OSError):
                self._watch.stdin.write(b"%d\n" % process)
                self._watch.stdin.flush()

    @contextlib.contextmanager
    def over_children(self) -> Iterator[None]:
        """Watch over whatever `multiprocessing` starts meanwhile, as soon as it is there."""
        known, over = set(multiprocessing.active_children()), threading.Event()

        def look() -> None:
            for child in set(multiprocessing.active_children()) - known:
                known.add(child)
                self.add(child.pid or 0)

        def keep_looking() -> None:
            while not over.wait(0.1):
                look()

        thread = threading.Thread(target=keep_looking, name="children", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            look()

    def close(self) -> None:
        """End those that are still there; returns when none is. May be called twice."""
        watch = self._let_go()
        if watch is not None:
            try:
                watch.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                watch.kill()
                watch.wait()

    def _let_go(self) -> subprocess.Popen[bytes] | None:
        watch, self._watch = self._watch, None
        if watch is not None and watch.stdin is not None:
            with contextlib.suppress(OSError):
                watch.stdin.close()
        return watch


_watches: weakref.WeakSet[Watch] = weakref.WeakSet()


def _forked() -> None:
    """In a fork of this process (vLLM makes some): only who made a watch may hold the other end of its pipe."""
    for one in list(_watches):
        watch = one._let_go()
        if watch is not None:
            watch.returncode = 0  # no child of this process


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
