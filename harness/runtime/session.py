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
from types import FrameType
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
        task: asyncio.Task[T] | None = None
        try:
            if _is_in_loop():
                off_thread: T = _in_thread(self._runner.run, work)
                return off_thread
            with _interrupts() as interrupts:
                loop = self._runner.get_loop()
                task = loop.create_task(work)
                interrupts.cancel(task)
                return loop.run_until_complete(task)
        finally:
            if task is None and inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
                work.close()  # Ctrl-C came before it began; work that began is cancelled with the loop

    async def take(self, engines: Mapping[str, Engine]) -> dict[str, Engine]:
        """The engines for a run, each the one that is up if that has the very same parameters; all else is closed,
        since they may need its memory. `keep` or `close` must follow."""
        taken: dict[str, Engine] = {}
        for name, engine in engines.items():
            up = next((one for one in self._idle if _is_same(one, engine)), engine)
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


class _Interrupts:
    """What Ctrl-C does to a run of the loop: the first cancels its task, or that task once there is one, since a loop
    that is only half there cannot be closed. (`asyncio.Runner.run` looks at Ctrl-C only once its loop and task stand.)
    """

    def __init__(self) -> None:
        self.count = 0
        self._task: asyncio.Task[Any] | None = None

    def handle(self, number: int, frame: FrameType | None) -> None:
        """The handler of the signal."""
        self.count += 1
        if self.count > 1:
            raise KeyboardInterrupt
        if self._task is not None:
            self._cancel()

    def cancel(self, task: asyncio.Task[Any]) -> None:
        """From now on cancel this task; at once if Ctrl-C has come."""
        self._task = task
        if self.count:
            self._cancel()

    def _cancel(self) -> None:
        if self._task is not None and not self._task.cancel():
            raise KeyboardInterrupt  # it has ended
        if self._task is not None:
            self._task.get_loop().call_soon_threadsafe(lambda: None)  # the loop may wait for its next event


@contextlib.contextmanager
def _interrupts() -> Iterator[_Interrupts]:
    """Within it Ctrl-C cancels a task. Where it does something else than Python's default, and in other threads, which
    get no signals, that stays."""
    interrupts = _Interrupts()
    main = threading.current_thread() is threading.main_thread()
    ours = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    handler = interrupts.handle
    if ours:
        signal.signal(signal.SIGINT, handler)
    try:
        yield interrupts
    except asyncio.CancelledError:
        if interrupts.count:
            raise KeyboardInterrupt from None
        raise
    finally:
        if ours and signal.getsignal(signal.SIGINT) == handler:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_same(one: Engine, other: Engine) -> bool:
    """Whether two engines have the same parameters and the same weights."""
    return type(one) is type(other) and one == other and one.weights == other.weights


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
