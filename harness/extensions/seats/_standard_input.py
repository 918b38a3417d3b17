"""The lines of standard input, which a task can stop to wait for although their client keeps it open."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError

MAX_LINE = 4 * 1024 * 1024
"""Bytes of a line; of a longer one the beginning is read, which is no JSON."""
_WAITING = 16
"""Lines that are read ahead."""


async def standard_input() -> AsyncIterator[str]:
    """The lines of standard input until it ends.

    A thread waits for them. No other thread waits for its end, as for those of a loop's executor, and it reads a
    descriptor of its own without a buffer, of which the interpreter would want the lock at the end.
    """
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[str | None](_WAITING)

    def put(line: bytes | None) -> None:
        waiting = lines.put(None if line is None else line.decode(errors="replace"))
        try:
            asyncio.run_coroutine_threadsafe(waiting, loop).result()
        finally:
            waiting.close()  # where the loop does not take it

    def read(descriptor: int) -> None:
        line = bytearray()
        try:
            while data := os.read(descriptor, 65536):
                *whole, rest = data.split(b"\n")
                for part in whole:
                    put(bytes(line + part)[:MAX_LINE])
                    line.clear()
                line += rest[: max(0, MAX_LINE - len(line))]
            put(None)
        except (RuntimeError, CancelledError):  # the loop is closed: nothing is read any more
            pass
        finally:
            os.close(descriptor)

    threading.Thread(target=read, args=(os.dup(0),), name="standard input", daemon=True).start()
    while (line := await lines.get()) is not None:
        yield line
