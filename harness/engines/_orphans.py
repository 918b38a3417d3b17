"""Ends the processes that an engine has started when the one that started them is gone, however it died."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

_WATCH = """
import os, select, signal, sys
left = set()
for line in sys.stdin.buffer:  # ends with who holds the other end
    try:
        left.add(os.pidfd_open(int(line)))  # holds on to this very process: its number may be given again
    except ProcessLookupError:
        pass
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


class Watch:
    """A small process that outlives this one and then ends others: first asks them to, after ten seconds kills them.

    A process that is killed cannot end its children, and vLLM's go on without it, with the accelerator's memory, which
    the same command needs to go on. Does nothing where the system knows no handles of processes (Linux does).
    """

    def __init__(self) -> None:
        self._watch: subprocess.Popen[bytes] | None = None
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
        if self._watch is not None and self._watch.stdin is not None:
            with contextlib.suppress(OSError):
                self._watch.stdin.close()
            self._watch.wait()
            self._watch = None
