"""A progress line now and then, even if no episode ends for minutes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass, fields
from functools import cache
from typing import Self

from harness.engines.usage import Usage
from harness.tables import EpisodeScore

_log = logging.getLogger(__name__)


class Heartbeat:
    """Counts since this process began to play; `line` says them.

    Args:
        title: what is played.
        scores: the finished episodes, by id; grows.
        total: how many there are to be.
        usage: what is asked.
        clock: seconds, never running backwards.
        planned: how many turns of models an episode is likely to have, asked while none has ended; None: unknown.

    Attributes:
        waiting_for: gives what engines wait for (`Engine.waiting_for`).
    """

    def __init__(
        self,
        title: str,
        scores: Mapping[str, EpisodeScore],
        total: int,
        usage: Usage,
        clock: Callable[[], float] = time.monotonic,
        planned: Callable[[], float | None] = lambda: None,
    ) -> None:
        self.title, self.scores, self.total, self.usage, self._clock = title, scores, total, usage, clock
        self.begin(clock(), usage, scores)
        self._planned = cache(planned)
        self.waiting_for: Callable[[], Iterable[str]] = lambda: ()

    def begin(self, now: float, usage: Usage, scores: Mapping[str, EpisodeScore]) -> None:
        """Playing began at this time, when so much was asked and finished."""
        self._begun = now, _Counts.of(usage), _turns_asked(scores), len(scores)
        self._last = self._begun[:2]

    def counts(self) -> str:
        """Calls answered of calls sent, output tokens a second since this was called last, and the time left."""
        now, all_time = self._clock(), _Counts.of(self.usage)
        counts, (before, last) = all_time - self._begun[1], self._last
        recent, seconds = all_time - last, now - before
        if not counts.turns and not self._new:  # an engine starts, or the first replies are on their way
            self._begun = now, *self._begun[1:]
        self._last = now, all_time
        parts = [f"{counts.answers:,} of {counts.calls:,} calls answered"]
        if counts.calls and not counts.answers:  # nothing is answered, or other processes do not say how many are
            parts = [f"{counts.calls:,} calls sent"]
        if seconds > 0 and (tokens := recent.output_tokens or recent.tokens) > 0:
            kind = "output tokens" if recent.output_tokens else "tokens"
            parts.append(f"{_rate(tokens / seconds)} {kind}/s")
        if (left := self._seconds_left(now - self._begun[0], counts.turns)) is not None:
            parts.append(f"about {_in_words(left)} left")
        parts += filter(None, self.waiting_for())
        return ", ".join(parts)

    @property
    def _new(self) -> int:
        """Episodes that this process has finished."""
        return len(self.scores) - self._begun[3]

    def _seconds_left(self, seconds: float, turns: int) -> float | None:
        """Seconds, by the turns that finished episodes had, else by those of the plan; None while that says nothing.

        A turn may take several calls. So turns are what is left, and the calls of a turn are part of its time.
        """
        done = len(self.scores)
        left, asked = self.total - done, _turns_asked(self.scores)
        each = (asked / done if done else self._planned()) or 0
        if each and turns > 0 and seconds > 0:
            of_open = max(0, turns - (asked - self._begun[2]))  # made in episodes that are not finished
            return max(left, each * left - of_open) * seconds / turns
        return seconds / self._new * left if self._new else None

    async def beat(self, interval: float) -> None:
        """Log a line, now and every so many seconds, until it is cancelled; a progress bar adds
        `LogRecord.counts`."""
        while True:
            counts = self.counts()
            episodes = f"{len(self.scores):,}/{self.total:,} episodes"
            _log.info("%s: %s, %s", self.title, episodes, counts, extra={"counts": counts})
            await asyncio.sleep(interval)


@dataclass(frozen=True)
class _Counts:
    """What is asked so far, by the names of `Usage`."""

    calls: int
    answers: int
    tokens: int
    output_tokens: int
    turns: int

    @classmethod
    def of(cls, usage: Usage) -> Self:
        return cls(*(getattr(usage, name.name) for name in fields(cls)))

    def __sub__(self, other: Self) -> Self:
        return type(self)(*(a - b for a, b in zip(astuple(self), astuple(other), strict=True)))


def _rate(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}"


def _turns_asked(scores: Mapping[str, EpisodeScore]) -> int:
    return sum(counts.get("asked", 0) for score in scores.values() for counts in score.turns.values())


def _in_words(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 100 else f"{minutes / 60:.1f} h"
