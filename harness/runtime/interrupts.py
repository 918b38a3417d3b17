"""Ctrl-C, and signals that do the same: the first waits for requests in flight, the second does not."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def first_interrupt(in_flight: Callable[[], int], wind_down: Callable[[int], None]) -> Iterator[None]:
    """Let the first Ctrl-C call `wind_down` with the number of requests in flight, if there are any. A second one, and
    the first where there are none, does what Ctrl-C did before. So it is in other threads, which get no signals.

    Args:
        in_flight: how many requests would be lost.
        wind_down: asks nothing new; called in the loop that runs now.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    loop = asyncio.get_running_loop()

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        if count := in_flight():
            loop.call_soon_threadsafe(wind_down, count)
        else:
            before(number, frame)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is interrupt:
            signal.signal(signal.SIGINT, before)
