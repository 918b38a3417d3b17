"""The event loop in which awaitables of agents run: one of this process, for all engines and all runs in it.

A client that a module keeps open belongs to the loop in which it was first used, and modules outlive engines. So this
loop does too.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from typing import Any, TypeVar

from harness.extensions.agents._agent_log import AgentLog

T = TypeVar("T")
_BLOCKED_SECONDS = 1.0
"""Seconds within which a loop must answer before it counts as blocked."""
_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_users: list[AgentLog] = []


class _Threads(ThreadPoolExecutor):
    """What `asyncio.to_thread` uses in this loop: threads that keep no process from exiting, should they hang."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()

        def run() -> None:
            with contextlib.suppress(InvalidStateError):  # nothing waits for it any more
                try:
                    future.set_result(fn(*args, **kwargs))
                except BaseException as error:  # for the one that awaits it
                    future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future


def enter(log: AgentLog) -> asyncio.AbstractEventLoop:
    """The loop, for an engine with this log; a new one if an agent has closed the last one, or blocks it."""
    global _loop
    with _lock:
        if _loop is None or not _answers(_loop):
            _loop = asyncio.new_event_loop()
            _loop.set_default_executor(_Threads())
            threading.Thread(target=_run, args=(_loop,), name="agents", daemon=True).start()
        _users.append(log)
        return _loop


def leave(log: AgentLog, loop: asyncio.AbstractEventLoop) -> None:
    """The engine with this log needs the loop no more. What agents have left running in it ends with the last one."""
    with _lock:
        _users.remove(log)
        if not _users and not loop.is_closed():
            loop.call_soon_threadsafe(_cancel_all, loop)


def _answers(loop: asyncio.AbstractEventLoop) -> bool:
    answered = threading.Event()
    try:
        loop.call_soon_threadsafe(answered.set)
    except RuntimeError:  # closed
        return False
    return answered.wait(_BLOCKED_SECONDS)


async def is_blocked(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether the loop, of another thread, does not get round to anything within a second."""
    answered: Future[None] = Future()

    def answer() -> None:
        if not answered.done():
            answered.set_result(None)

    try:
        loop.call_soon_threadsafe(answer)
        async with asyncio.timeout(_BLOCKED_SECONDS):
            await asyncio.wrap_future(answered)
    except TimeoutError:
        return True
    except RuntimeError:  # closed
        return False
    return False


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    while not loop.is_closed():
        try:
            loop.run_forever()
        except BaseException as error:  # SystemExit in a task of an agent's own
            for log in list(_users):
                log.write("".join(traceback.format_exception(error)))
