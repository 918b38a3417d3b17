"""Where requests wait until an engine takes them: the oldest conversation first, not the first request."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from itertools import count


class PriorityGate:
    """Lets requests through to an engine while it `admits` more.

    Of the waiting requests, the one whose conversation was opened first goes first (`Thread.age`). An engine's prefix
    cache holds the conversations that were continued lately: served in order of arrival, hundreds of them would push
    one another out of it between any two turns. Oldest first, a few are played to their end while the others wait.
    It also keeps few episodes half played.

    A request always passes where none is in flight, whatever `admits` says: nothing can wait forever.

    Args:
        admits: whether one more request may go, for the number in flight.

    Attributes:
        in_flight: requests that passed and have not left.
        longest: the most requests that waited at once.
    """

    def __init__(self, admits: Callable[[int], bool]) -> None:
        self._admits = admits
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = count()
        self.in_flight = 0
        self.longest = 0

    async def enter(self, age: int) -> None:
        """Wait until a request of a conversation of this age may go; `leave` must follow."""
        if not self._waiting and self._open():
            self.in_flight += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (age, next(self._order), turn))
        self.longest = max(self.longest, len(self._waiting))
        self.advance()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was let through, and is not wanted any more
                self.leave()
            raise

    @property
    def waiting(self) -> int:
        """Requests that wait."""
        return len(self._waiting)

    def leave(self) -> None:
        """One request is done."""
        self.in_flight -= 1
        self.advance()

    def advance(self) -> None:
        """Let through the requests that may go now; called where `admits` may answer differently."""
        while self._waiting and self._open():
            turn = heapq.heappop(self._waiting)[2]
            if not turn.done():  # else its request was cancelled
                self.in_flight += 1
                turn.set_result(None)

    def _open(self) -> bool:
        return self.in_flight == 0 or self._admits(self.in_flight)
