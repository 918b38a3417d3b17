"""What a run may spend: model calls, tokens, seconds. When it is spent nothing new is asked, and the run ends.

It is no part of what a run is: it decides how far this process goes, never what is measured, and the run can be gone on
with. What a spec allows an episode or a seat is in `harness.config.limits`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass

from harness.api import Completion, Engine, Request
from harness.errors import BudgetSpentError, EngineFatalError, SetupError

from .wrappers import Wrapper

LARGEST = 10**18 - 1


@dataclass(frozen=True)
class Budget:
    """What a run may spend; None: as much as it takes.

    Attributes:
        max_calls: requests made of engines, failed ones too, in all processes of the run together.
        max_tokens_total: input and output tokens of the answers, in all processes together. They are known only when
            an answer is there: what is in flight when the sum reaches this comes on top.
        max_time: seconds from the start of this process's run, in which something new is asked.

    Raises:
        SetupError: a value that is no such number.
    """

    max_calls: int | None = None
    max_tokens_total: int | None = None
    max_time: float | None = None

    def __post_init__(self) -> None:
        for name in ("max_calls", "max_tokens_total"):
            value = getattr(self, name)
            if value is not None and not (type(value) is int and 1 <= value <= LARGEST):
                raise SetupError(f"{name} must be a whole number from 1 to 10^18 − 1, found {value!r:.40}")
        span = self.max_time
        if span is not None and not (type(span) in (int, float) and 0 < span <= LARGEST):
            raise SetupError(f"max_time must be a number of seconds above 0, found {span!r:.40}")


AHEAD = 32
"""Calls that are journaled before they are asked, at most: as many at once as costs little and wastes little."""


class Tally:
    """What a run has spent so far, of all its engines, and whether that leaves something.

    Where calls are bounded, each is journaled before it is asked. So the journal of a process that is killed shows at
    least what it has asked, and the run never asks more than it may.

    Args:
        budget: what it may spend.
        calls, tokens: what earlier processes of the run spent.
        now: a clock in seconds; the time starts to run here.

    Attributes:
        write: journals [calls, tokens] and returns when that outlives this process; may raise `StorageError`.
        over: that it is spent, where somebody else keeps the count and has said so.
    """

    def __init__(
        self, budget: Budget, calls: int = 0, tokens: int = 0, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.budget, self.calls, self.tokens, self._now = budget, calls, tokens, now
        self.bounded = budget != Budget()
        self._noted = (calls, tokens)
        self._end = None if budget.max_time is None else now() + budget.max_time
        self._uncounted: Engine | None = None
        self.write: Callable[[list[int]], None] | None = None
        self.over: BudgetSpentError | None = None

    def check_time(self) -> None:
        """Raises `BudgetSpentError` when the time is over."""
        if self._end is not None and self._now() >= self._end:
            raise self.time_over()

    def time_left(self) -> float | None:
        """Seconds; None: no end of it."""
        return None if self._end is None else max(0.0, self._end - self._now())

    def time_over(self) -> BudgetSpentError:
        """What to raise then."""
        return BudgetSpentError("max_time", self.budget.max_time or 0)

    def check(self) -> None:
        """Raises `BudgetSpentError` when nothing new is to be asked, `EngineFatalError` when nobody can tell."""
        budget = self.budget
        if budget.max_calls is not None and self.calls >= budget.max_calls:
            raise BudgetSpentError("max_calls", budget.max_calls)
        self.check_counted()
        if budget.max_tokens_total is not None and self.tokens >= budget.max_tokens_total:
            raise BudgetSpentError("max_tokens_total", budget.max_tokens_total)
        self.check_time()

    def check_counted(self) -> None:
        """Raises `EngineFatalError` where tokens are to be counted and an engine does not say them."""
        if self._uncounted is not None and self.budget.max_tokens_total is not None:
            message = f"{self._uncounted.model} does not say how many tokens its calls take"
            raise EngineFatalError(f"{message}: max_tokens_total cannot be kept")

    async def admit(self) -> None:
        """Count a call that is about to be asked, so that never more are in flight than there may be. Raises as
        `check`, or waits until it is known whether there may be one more."""
        self.check()
        self._count(self.budget.max_calls)

    def _count(self, most: int | None) -> None:
        """One call more, of `most`."""
        if most is not None and self.write is not None and self.calls >= self._noted[0]:
            ahead = min(AHEAD, 1 + (most - self.calls) // 20)
            self.write([ahead, 0])
            self._noted = (self.calls + ahead, self._noted[1])
        self.calls += 1

    def halt(self, reason: Exception) -> None:
        """The run is about to end: who waits in `admit` waits no longer."""

    def answered(self, answer: Completion, engine: Engine) -> None:
        """Count the tokens of an engine's answer."""
        read, written = answer.input_tokens, answer.output_tokens
        if read is None or written is None:
            self._uncounted = engine
        self.tokens += (read or 0) + (written or 0)

    def since(self) -> list[int] | None:
        """[calls, tokens] that were spent and are not journaled: for the journal. None: nothing."""
        return self._note(max(self.calls, self._noted[0]))

    def rest(self) -> list[int] | None:
        """As `since`, where nothing more is asked: less than nothing where calls were journaled and not asked."""
        return self._note(self.calls)

    def _note(self, calls: int) -> list[int] | None:
        noted = self._noted
        self._noted = (calls, self.tokens)
        return None if self._noted == noted else [calls - noted[0], self.tokens - noted[1]]


class Budgeted(Wrapper):
    """Asks as long as the tally leaves something, and counts; the innermost wrapper, so that only what is really
    asked counts: an answer from a cache, or one that is shared, costs nothing."""

    def __init__(self, inner: Engine, tally: Tally) -> None:
        super().__init__(inner)
        self.tally = tally
        self._started = False

    async def start(self) -> None:
        """Start the engine, unless nothing may be asked of it any more: what is recorded or cached needs none."""
        self._started = False
        with contextlib.suppress(BudgetSpentError):
            self.tally.check()
            await self.inner.start()
            self._started = True

    def halt(self, reason: Exception) -> None:
        self.tally.halt(reason)
        self.inner.halt(reason)

    async def rest(self) -> bool:
        return self._started and await self.inner.rest()

    async def complete(self, request: Request) -> Completion:
        """Raises `BudgetSpentError` instead of asking when the budget is spent."""
        tally = self.tally
        if tally.bounded:  # what is spent stays spent: an engine that was not started is not asked
            await tally.admit()
        else:
            tally.calls += 1
        answer = await self.inner.complete(request)
        tally.answered(answer, self.inner)
        return answer
