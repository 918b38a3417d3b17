"""Which conversations have a process of an agent, where there are fewer slots than conversations."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Hashable
from itertools import count
from typing import Generic, TypeVar

P = TypeVar("P", bound=Hashable)


WAIT_SECONDS = 0.05
"""Seconds without a busy process after which those that wait are let in: the next turns may be about to be asked."""


class ProcessSlots(Generic[P]):
    """A bounded number of slots for processes.

    A process keeps its slot between the turns of its conversation, since starting it again is slow. It has to leave
    for a conversation that is older, or where no process is busy and so none would become free: then as many leave as
    conversations wait. So a few episodes are played to their end, while the others wait, and none waits forever.

    Args:
        most: how many slots there are.
        end: ends an idle process whose slot another one needs; has to call `leave`, and `free` in the end.

    Attributes:
        ended_for_room: how many were ended so.
    """

    def __init__(self, most: int, end: Callable[[P], None]) -> None:
        self._most, self._end = most, end
        self._busy = 0
        self._idle: dict[P, int] = {}
        self._leaving: set[P] = set()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = count()
        self._stuck: asyncio.TimerHandle | None = None
        self.ended_for_room = 0

    async def take(self, age: int) -> None:
        """Wait for a slot for a conversation of this age (`Thread.age`); `free` must follow."""
        if not self._waiting and self._busy < self._most:
            self._busy += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (age, next(self._order), turn))
        self._advance()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was let through, and is not wanted any more
                self.free()
            raise

    def free(self, process: P | None = None) -> None:
        """A process has ended, or was not started after all."""
        self._busy -= 1
        if process is not None:
            self._idle.pop(process, None)
            self._leaving.discard(process)
        self._advance()

    def rest(self, process: P, age: int) -> None:
        """A process has answered, and waits for the next turn of its conversation."""
        self._idle[process] = age
        self._advance()

    def work(self, process: P) -> None:
        """A process is asked."""
        self._idle.pop(process, None)

    def leave(self, process: P) -> None:
        """A process is about to end."""
        self._idle.pop(process, None)
        self._leaving.add(process)

    def resting(self) -> P | None:
        """The process that answered last, of those that wait."""
        return next(reversed(self._idle), None)

    def _advance(self) -> None:
        while self._waiting and (self._busy < self._most or self._waiting[0][2].done()):
            turn = heapq.heappop(self._waiting)[2]
            if not turn.done():  # else its request was cancelled
                self._busy += 1
                turn.set_result(None)
        while self._wants_room():
            youngest = max(self._idle, key=self._idle.__getitem__)
            if self._idle[youngest] < self._waiting[0][0]:
                if not self._is_busy() and self._stuck is None:
                    self._stuck = asyncio.get_running_loop().call_later(WAIT_SECONDS, self._unblock)
                return
            self._make_room(youngest)

    def _unblock(self) -> None:
        self._stuck = None
        while not self._is_busy() and self._wants_room():
            self._make_room(max(self._idle, key=self._idle.__getitem__))

    def _wants_room(self) -> bool:
        return bool(self._idle) and len(self._waiting) > len(self._leaving)

    def _is_busy(self) -> bool:
        return self._busy > len(self._idle) + len(self._leaving)

    def _make_room(self, process: P) -> None:
        self.ended_for_room += 1
        self._end(process)
