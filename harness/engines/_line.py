"""Where requests wait until an engine takes them: the oldest conversation first, not the first come."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from itertools import count


class Line:
    """Lets requests through to an engine while it `admits` more.

    Of those that wait, the one whose conversation was opened first goes first (`Thread.age`). An engine's prefix cache
    holds conversations that were continued lately: served first come, first served, hundreds of them would push one
    another out of it between any two turns. The oldest first, a few are played to their end while the others wait.
    It also keeps few episodes half played.

    A request is always let through where none is in flight, whatever `admits` says: nothing can wait for ever.

    Args:
        admits: whether one more request may go, given how many are in flight.
    """

    def __init__(self, admits: Callable[[int], bool]) -> None:
        self._admits = admits
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = count()
        self.flying = 0
        self.longest = 0

    async def enter(self, age: int) -> None:
        """Wait until a request of a conversation of this age may go; `leave` must follow."""
        if not self._waiting and self._open():
            self.flying += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (age, next(self._order), turn))
        self.longest = max(self.longest, len(self._waiting))
        self.advance()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # let through, and not wanted any more
                self.leave()
            raise

    def leave(self) -> None:
        """One request is done."""
        self.flying -= 1
        self.advance()

    def advance(self) -> None:
        """Let through whoever may go now; called where `admits` may have changed its mind."""
        while self._waiting and self._open():
            turn = heapq.heappop(self._waiting)[2]
            if not turn.done():  # else its asker was cancelled
                self.flying += 1
                turn.set_result(None)

    def _open(self) -> bool:
        return self.flying == 0 or self._admits(self.flying)
