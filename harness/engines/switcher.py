"""Several engines of which only one fits at a time: one is started, and works until no request waits for it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection
from typing import TYPE_CHECKING

from harness.api.errors import EngineFatalError, SetupError

if TYPE_CHECKING:
    from harness.engines.gate import Gate


class EngineSwitcher:
    """Starts one of several engines at a time.

    An engine's requests wait while another one works. When an engine has no requests left, the engine with the most
    waiting requests replaces it. There are few switches, since many episodes run at once and wait for the moves of a
    batch together. The replaced engine sleeps if it can; otherwise it is closed, and its next start loads it again.

    Args:
        engines: the names of the engines.

    Attributes:
        switches: how often an engine was started.

    Raises:
        SetupError: there is only one.
    """

    def __init__(self, engines: Collection[str]) -> None:
        if len(engines) < 2:
            message = "this run has a single engine: there is none to switch to"
            raise SetupError(message, hint="Leave --sequential_engines out.")
        self.switches = 0
        self._current: Gate | None = None
        self._in_flight = 0
        self._waiting: defaultdict[Gate, list[asyncio.Future[None]]] = defaultdict(list)
        self._switching: asyncio.Task[None] | None = None

    async def enter(self, engine: Gate) -> None:
        """Wait until `engine` is the one that works; `leave` must follow. Raises `EngineFatalError` if it cannot."""
        if self._current is engine and self._switching is None:
            self._in_flight += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[engine].append(turn)
        self._advance()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:  # let through too late
                self.leave()
            raise

    def leave(self) -> None:
        """One request is done."""
        self._in_flight -= 1
        self._advance()

    async def close(self) -> None:
        """Switch no more."""
        if self._switching is not None:
            self._switching.cancel()
            await asyncio.gather(self._switching, return_exceptions=True)

    def _advance(self) -> None:
        if self._in_flight == 0 and self._switching is None and any(self._waiting.values()):
            self._switching = asyncio.create_task(self._switch())

    async def _switch(self) -> None:
        await asyncio.sleep(0)  # all that are about to ask the present one do so now
        following = max(self._waiting, key=lambda engine: (len(self._waiting[engine]), engine is self._current))
        turns, self._waiting[following] = self._waiting[following], []
        failure: Exception | None = None
        try:
            if following is not self._current:
                if self._current is not None:
                    before, self._current = self._current, None
                    await before.make_room()
                await following.wake()
                self._current = following
                self.switches += 1
        except Exception as error:  # whatever starting or closing an engine raises must reach the waiting requests
            failure = EngineFatalError(f"{following.model} cannot be started: {error or type(error).__name__}")
        finally:
            self._switching = None
        for turn in turns:
            if turn.done():  # its request was cancelled
                continue
            if failure is not None:
                turn.set_exception(failure)
            else:
                self._in_flight += 1
                turn.set_result(None)
        self._advance()
