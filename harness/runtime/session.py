"""One event loop for all runs of a command, so that an engine that takes long to start can stay up between them: from
play to what follows, and over the runs of one command."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

from harness.api import Engine, StaysUp

T = TypeVar("T")


class Session:
    """The loop, and the engines that are up and that no run has."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._idle: list[Engine] = []

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to completion, also inside a notebook, whose own loop is running."""
        try:
            if _is_in_loop():
                off_thread: T = _in_thread(self._runner.run, work)
                return off_thread
            with _held_signals() as let_through:
                result: T = self._runner.run(_after(let_through, work))
            return result
        finally:
            if inspect.getcoroutinestate(work) == inspect.CORO_CREATED:  # Ctrl-C came before it began
                work.close()  # work that began is cancelled with the loop: closed here, it could not end in order

    async def take(self, engines: Mapping[str, Engine]) -> dict[str, Engine]:
        """The engines for a run, each the one that is up if that has the very same parameters; all else is closed,
        since they may need its memory. `keep` or `close` must follow."""
        taken: dict[str, Engine] = {}
        for name, engine in engines.items():
            up = next((one for one in self._idle if type(one) is type(engine) and one == engine), engine)
            self._idle = [one for one in self._idle if one is not up]
            taken[name] = up
        await self._close_idle()
        return taken

    def keep(self, engine: Engine) -> bool:
        """Take back an engine in good order; False: close it."""
        if isinstance(engine, StaysUp):
            self._idle.append(engine)
            return True
        return False

    async def _close_idle(self) -> None:
        idle, self._idle = self._idle, []
        for engine in idle:
            await engine.close()

    def close(self) -> None:
        """Close the engines and the loop."""
        try:
            if self._idle:
                self.run(self._close_idle())
        finally:
            if _is_in_loop():
                _in_thread(self._runner.close)
            else:
                self._runner.close()


@contextlib.contextmanager
def _held_signals() -> Iterator[Callable[[], object]]:
    """Hold back Ctrl-C, and what does the same, until the function that this yields is called: a loop that is only half
    there cannot be closed, and work that has not begun cannot end in order. In other threads, which get no signals,
    nothing is held."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


async def _after(first: Callable[[], object], work: Coroutine[Any, Any, T]) -> T:
    first()
    return await work


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _in_thread(function: Callable[..., T], *arguments: Any) -> T:
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(copy_context().run, function, *arguments).result()


_current: ContextVar[Session | None] = ContextVar("session", default=None)


def current() -> Session | None:
    """The session that a run is part of; None in the workers of a cluster."""
    return _current.get()


@contextlib.contextmanager
def session() -> Iterator[Session]:
    """The session that is open, or a new one."""
    if (one := _current.get()) is not None:
        yield one
        return
    token = _current.set(one := Session())
    try:
        yield one
    finally:
        _current.reset(token)
        one.close()
