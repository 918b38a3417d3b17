"""What a run may use: model calls, tokens, seconds. When that is used up it makes no new call, and the run ends.

It is not part of what a run is: it decides how far this process goes, never what is measured, and the run can be
resumed. What a spec allows an episode or an agent is in `harness.config.limits`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from harness.api import Completion
from harness.engine_api import Engine
from harness.errors import BudgetSpentError, EngineFatalError, SetupError

LARGEST = 10**18 - 1
RESERVED = 32
"""Calls that are reserved in the journal in advance, at most: as many at once as costs little and wastes little."""


@dataclass(frozen=True)
class Budget:
    """What a run may use; None: as much as it takes.

    Attributes:
        max_calls: requests made of engines, failed ones too, in all processes of the run together.
        max_tokens_total: input and output tokens of the answers, in all processes together. They are known only when
            an answer is there: what is in flight when the sum reaches this comes on top.
        max_time: seconds from the start of this process's run, in which it may make new calls.

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


@dataclass(frozen=True)
class Spent:
    """Calls, tokens and seconds that were used of a budget."""

    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0


class Usage:
    """What a run has used of its budget, of all its engines.

    Where calls are bounded each is reserved in the journal before it is made. So the journal of a process that is
    killed shows at least the calls it made, and the run never makes more than it may.

    Args:
        budget: what it may use.
        calls, tokens: what earlier processes of the run used.
        now: a clock in seconds; the time starts to run here.
        seconds: what is used of the time already.

    Attributes:
        write: journals [calls, tokens] and returns when that outlives this process; may raise `StorageError`.
        exhausted: why it is used up, where another process keeps the count and has said so.
    """

    def __init__(
        self,
        budget: Budget,
        calls: int = 0,
        tokens: int = 0,
        now: Callable[[], float] = time.monotonic,
        seconds: float = 0.0,
    ) -> None:
        self.budget, self.calls, self.tokens, self._now = budget, calls, tokens, now
        self.bounded = budget != Budget()
        self._journaled = (calls, tokens)
        self._end = None if budget.max_time is None else now() + budget.max_time - seconds
        self._uncounted: Engine | None = None
        self.write: Callable[[list[int]], None] | None = None
        self.exhausted: BudgetSpentError | None = None

    def check(self) -> None:
        """Raises `BudgetSpentError` when nothing is left, `EngineFatalError` when tokens cannot be counted."""
        budget = self.budget
        if budget.max_calls is not None and self.calls >= budget.max_calls:
            raise BudgetSpentError("max_calls", budget.max_calls)
        self.check_counted()
        if budget.max_tokens_total is not None and self.tokens >= budget.max_tokens_total:
            raise BudgetSpentError("max_tokens_total", budget.max_tokens_total)
        self.check_time()

    def check_time(self) -> None:
        """Raises `BudgetSpentError` when the time is over."""
        if self._end is not None and self._now() >= self._end:
            raise self.time_over()

    def check_counted(self) -> None:
        """Raises `EngineFatalError` if tokens are bounded and an engine does not report them."""
        if self._uncounted is not None and self.budget.max_tokens_total is not None:
            message = f"{self._uncounted.model} does not say how many tokens its calls take"
            raise EngineFatalError(f"{message}: max_tokens_total cannot be kept")

    def time_left(self) -> float | None:
        """Seconds; None: no end of it."""
        return None if self._end is None else max(0.0, self._end - self._now())

    def time_over(self) -> BudgetSpentError:
        """The error to raise when the time is up."""
        return BudgetSpentError("max_time", self.budget.max_time or 0)

    async def take(self) -> None:
        """Count a call that is about to be made, so that never more are in flight than there may be. Raises as
        `check`."""
        self.check()
        self._count(self.budget.max_calls)

    def _count(self, most: int | None) -> None:
        """One call more, of `most`."""
        if most is not None and self.write is not None and self.calls >= self._journaled[0]:
            ahead = min(RESERVED, 1 + (most - self.calls) // 20)
            self.write([ahead, 0])
            self._journaled = (self.calls + ahead, self._journaled[1])
        self.calls += 1

    def answered(self, answer: Completion, engine: Engine) -> None:
        """Count the tokens of an engine's answer."""
        input_tokens, output_tokens = answer.input_tokens, answer.output_tokens
        if input_tokens is None or output_tokens is None:
            self._uncounted = engine
        self.tokens += (input_tokens or 0) + (output_tokens or 0)

    def halt(self, reason: Exception) -> None:
        """The run is about to end: no call waits in `take` any longer."""

    def unjournaled(self, *, ending: bool = False) -> list[int] | None:
        """[calls, tokens] that were used and are not journaled, for the journal; None: nothing.

        Args:
            ending: no call follows. The calls are below zero then, where more were reserved than made.
        """
        before = self._journaled
        self._journaled = (self.calls if ending else max(self.calls, before[0]), self.tokens)
        return None if self._journaled == before else [self._journaled[0] - before[0], self.tokens - before[1]]
