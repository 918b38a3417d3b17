"""Several engines of which only one fits at a time: they take turns, each until nobody asks it any more."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from harness.api import Completion, Engine, Request
from harness.errors import BudgetSpentError, EngineFatalError, SetupError

from .wrappers import Wrapper


class Rota:
    """Lets one of several engines be started at a time.

    An engine's requests wait while another one works. It is relieved when it has none left, by the one for which most
    are waiting: since many episodes run at once, and a batch's moves are awaited together, there are few changes.
    Who is relieved rests where it can (`Engine.rest`), else is closed and has to be started from nothing.

    Args:
        engines: name → engine, none of them started.
    """

    def __init__(self, engines: Mapping[str, Engine]) -> None:
        self.engines = {name: _Taking(engine, self) for name, engine in engines.items()}
        self.changes = 0
        self._current: _Taking | None = None
        self._resting: set[_Taking] = set()
        self._busy = 0
        self._waiting: dict[_Taking, list[asyncio.Future[None]]] = {engine: [] for engine in self.engines.values()}
        self._change: asyncio.Task[None] | None = None

    async def enter(self, engine: _Taking) -> None:
        """Wait until `engine` is the one that works."""
        if self._current is engine and self._change is None:
            self._busy += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[engine].append(turn)
        self._relieve()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:  # given, and not taken any more
                self.leave()
            raise

    def leave(self) -> None:
        """One request is done."""
        self._busy -= 1
        self._relieve()

    async def stop(self) -> None:
        """Let go of whichever is started."""
        if self._change is not None:
            self._change.cancel()
            await asyncio.gather(self._change, return_exceptions=True)
        started = self._resting | ({self._current} if self._current is not None else set())
        self._resting, self._current = set(), None
        for engine in started:
            await engine.inner.close()

    def _relieve(self) -> None:
        if self._busy == 0 and self._change is None and any(self._waiting.values()):
            self._change = asyncio.create_task(self._start_next())

    async def _start_next(self) -> None:
        await asyncio.sleep(0)  # all that are about to ask the present one do so now
        wanted = max(self._waiting, key=lambda engine: (len(self._waiting[engine]), engine is self._current))
        turns, self._waiting[wanted] = self._waiting[wanted], []
        failure: Exception | None = None
        try:
            if wanted is not self._current:
                if self._current is not None:
                    before, self._current = self._current, None
                    self._resting.add(before)
                    if not await before.inner.rest():
                        self._resting.discard(before)
                        await before.inner.close()
                await wanted.inner.start()
                self._resting.discard(wanted)  # not before: if it may not or cannot start it is still to be closed
                self._current = wanted
                self.changes += 1
        except asyncio.CancelledError:
            self._resting.discard(wanted)
            await wanted.inner.close()
            raise
        except BudgetSpentError as spent:  # who waits need not be answered any more, and nothing is started for them
            failure = spent
        except Exception as error:  # whatever starting or closing an engine does: those who wait must hear of it
            failure = EngineFatalError(f"{wanted.model} cannot be started: {error or type(error).__name__}")
        finally:
            self._change = None
        for turn in turns:
            if turn.done():  # its asker was cancelled
                continue
            if failure is not None:
                turn.set_exception(failure)
            else:
                self._busy += 1
                turn.set_result(None)
        self._relieve()


class _Taking(Wrapper):
    """One of the engines that take turns."""

    def __init__(self, inner: Engine, rota: Rota) -> None:
        super().__init__(inner)
        self._rota = rota

    async def start(self) -> None:
        """It starts when its turn comes."""

    async def complete(self, request: Request) -> Completion:
        await self._rota.enter(self)
        try:
            return await self.inner.complete(request)
        finally:
            self._rota.leave()

    async def close(self) -> None:
        await self._rota.stop()

    def report(self) -> Mapping[str, object]:
        return {**self.inner.report(), "changes_of_engine": self._rota.changes}


def in_turns(engines: Mapping[str, Engine]) -> Mapping[str, Engine]:
    """The engines, taking turns. Raises `SetupError` if there is but one."""
    if len(engines) < 2:
        raise SetupError("engines take turns where there are several", hint="Leave --take_turns out.")
    return Rota(engines).engines
