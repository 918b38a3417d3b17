"""A progress line now and then, even if no episode ends for minutes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping

from harness.engines.budget import Usage
from harness.tables import EpisodeScore

EVERY = 30.0
"""Seconds between two lines."""
_log = logging.getLogger(__name__)


class Heartbeat:
    """Counts since this process began to play; `line` says them.

    Args:
        title: what is played.
        scores: the finished episodes, by id; grows.
        total: how many there are to be.
        usage: what is asked.
        clock: seconds, never running backwards.
    """

    def __init__(
        self,
        title: str,
        scores: Mapping[str, EpisodeScore],
        total: int,
        usage: Usage,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.title, self.scores, self.total, self.usage, self._clock = title, scores, total, usage, clock
        self._begun = clock(), usage.calls, _turns_asked(scores), len(scores)
        self._last = clock(), usage.tokens

    def counts(self) -> str:
        """Calls, tokens a second since this was called last, and the time left."""
        now, tokens = self._clock(), self.usage.tokens
        calls = self.usage.calls - self._begun[1]
        seconds, recent = now - self._last[0], tokens - self._last[1]
        self._last = now, tokens
        parts = [f"{calls:,} calls"]
        if recent > 0 and seconds > 0:
            parts.append(f"{recent / seconds:,.0f} tokens/s")
        if (left := self._seconds_left(now - self._begun[0], calls)) is not None:
            parts.append(f"about {_in_words(left)} left")
        return ", ".join(parts)

    def _seconds_left(self, seconds: float, calls: int) -> float | None:
        """Seconds, by the calls that finished episodes took; None while that says nothing."""
        done = len(self.scores)
        left = self.total - done
        asked = _turns_asked(self.scores)
        if asked and calls > 0:
            open_calls = max(0, calls - (asked - self._begun[2]))  # of episodes that are not finished
            return max(0.0, asked / done * left - open_calls) * seconds / calls
        new = done - self._begun[3]
        return seconds / new * left if new else None

    async def beat(self) -> None:
        """Log a line every `EVERY` seconds, until it is cancelled; a progress bar adds `LogRecord.counts`."""
        while True:
            await asyncio.sleep(EVERY)
            counts = self.counts()
            episodes = f"{len(self.scores):,}/{self.total:,} episodes"
            _log.info("%s: %s, %s", self.title, episodes, counts, extra={"counts": counts})


def _turns_asked(scores: Mapping[str, EpisodeScore]) -> int:
    return sum(counts.get("asked", 0) for score in scores.values() for counts in score.turns.values())


def _in_words(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 100 else f"{minutes / 60:.1f} h"
