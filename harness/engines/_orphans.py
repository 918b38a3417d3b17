"""Ends the processes that an engine has started when the one that started them is gone, however it died."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterable

_WATCH = """
import os, select, signal, sys
left = {}
for pid in map(int, sys.argv[1:]):
    try:
        left[os.pidfd_open(pid)] = pid  # holds on to this very process: its number may be given again
    except ProcessLookupError:
        pass
sys.stdin.buffer.read()  # ends with who holds the other end
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
            del left[fd]
"""


class Watch:
    """A small process that outlives this one and then ends others: first asks them to, after ten seconds kills them.

    A process that is killed cannot end its children, and vLLM's go on without it, with the accelerator's memory, which
    the same command needs to go on. Does nothing where the system knows no handles of processes (Linux does).

    Args:
        processes: their numbers.
    """

    def __init__(self, processes: Iterable[int]) -> None:
        self._watch: subprocess.Popen[bytes] | None = None
        if hasattr(os, "pidfd_open"):
            command = [sys.executable, "-I", "-S", "-c", _WATCH, *map(str, processes)]
            nowhere = subprocess.DEVNULL
            # A session of its own: Ctrl-C goes to this process and not to that one.
            self._watch = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, start_new_session=True
            )

    def close(self) -> None:
        """End those that are still there; returns when none is. May be called twice."""
        if self._watch is not None and self._watch.stdin is not None:
            with contextlib.suppress(OSError):
                self._watch.stdin.close()
            self._watch.wait()
            self._watch = None
