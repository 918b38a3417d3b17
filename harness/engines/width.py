"""How many requests at once are worth sending to a server that does not say how many it works on.

A server that works on two requests lets the others wait. Hundreds that go out together would wait there for minutes,
in the order in which they came, and whoever ends the run would wait for all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

START, MIN_WIDTH = 16, 4
GAIN = 1.25
"""How many times as fast a server must become with twice the requests."""


class Width:
    """The most requests in flight: additive increase, multiplicative decrease.

    The width grows by one with each answer, to twice of what it was. Then it stays for a while and compares how many
    tokens a second came back. Where twice the requests take twice as long, the server is no faster: they only waited,
    and the width is halved, to grow again later. It is halved once more where that happens twice in a row, and where
    the server slows down to half of its speed at the full width.

    Latencies alone would mislead: where a server works on requests together, they rise with every one, and so does its
    speed.

    Args:
        most: the largest width.
        clock: seconds, never running backwards.

    Attributes:
        now: the width at present.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.now = self._low = self._target = min(START, most)
        self._most, self._clock = most, clock
        self._speed: float | None = None  # at the width `_low`
        self._falls = 0
        self._since: float | None = None
        self._begin()

    def answered(self, tokens: int, in_flight: int, waiting: int) -> None:
        """Count an answer.

        Args:
            tokens: that came back.
            in_flight: requests, with this one.
            waiting: requests that would have gone, had the width let them.
        """
        if in_flight != self.now or not waiting:  # what is narrower, or not narrowed yet, says nothing of this width
            self._begin()
            return
        if self.now < self._target:
            self.now += 1
            self._begin()
            return
        if self._since is None:  # from one answer to another
            self._since = self._clock()
            return
        self._answers += 1
        self._tokens += max(1, tokens)
        if self._answers < max(2 * MIN_WIDTH, self.now):
            return
        speed = self._tokens / max(1e-9, self._clock() - self._since)
        self._begin()
        self._compare(speed)

    def _compare(self, speed: float) -> None:
        """Decide where to go from here, as fast as the server is."""
        if self._speed is None:
            self._speed = speed
        elif self.now > self._low:
            if speed < GAIN * self._speed:
                self._fall(self._low if self._falls == 0 else self._low // 2)
                return
            self._low, self._speed, self._falls = self.now, speed, 0
        elif speed < self._speed / 2:
            self._fall(self.now // 2)
            return
        else:
            self._speed = max(self._speed, speed)
        self._target = min(self._most, 2 * self._low)

    def _fall(self, to: int) -> None:
        self._falls = (self._falls + 1) % 2
        self.now = self._low = self._target = max(min(MIN_WIDTH, self._most), to)
        self._speed = None

    def _begin(self) -> None:
        self._answers = self._tokens = 0
        self._since = None
