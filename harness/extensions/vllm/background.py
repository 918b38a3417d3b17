"""What takes minutes and cannot be awaited, such as loading a model, in a thread: meanwhile the event loop answers
signals and says how long it takes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from harness.engines.gate import given_up

T = TypeVar("T")
INTERVAL_SECONDS = 15.0
"""Seconds between two lines that say how long it takes."""
EXIT_SECONDS = 0.5
"""Seconds that work has to end once it was given up."""
_log = logging.getLogger(__name__)


async def in_background(title: str, work: Callable[[], T], give_up: Callable[[], None]) -> T:
    """Do some work in a thread of its own; returns, or raises, what it does.

    Cancelling ends the waiting within `EXIT_SECONDS`, whether or not the work ends with it.

    Args:
        title: what is done, for the log.
        work: what takes long.
        give_up: called when nothing waits for the work any more; makes it end soon.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    result: list[T] = []
    failure: list[BaseException] = []

    def finish() -> None:
        if not done.done():
            done.set_result(None)

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:  # also what plugins of the library think ends the process
            failure.append(error)
        finally:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(finish)

    thread = threading.Thread(target=run, name=title, daemon=True)
    begun = time.monotonic()
    thread.start()
    try:
        while not done.done():
            await asyncio.wait({done}, timeout=INTERVAL_SECONDS)
            if not done.done():
                _log.info("%s: %.0f s", title, time.monotonic() - begun)
    except asyncio.CancelledError:
        give_up()
        await asyncio.to_thread(thread.join, EXIT_SECONDS)
        given_up.append(title)
        raise
    if failure:
        error = failure[0]
        raise error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__}: {error}") from error
    return result[0]
