"""One budget for several workers. Each may use a share of what is left, and gets another one when that is used up.

Shares shrink with what is left. What a worker has not used when it has nothing to play is left for others. Knows
nothing of Ray.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from harness.api.errors import BudgetSpentError
from harness.engines.bounded_usage import BoundedUsage
from harness.engines.usage import MAX_BUDGET, Budget, Usage

MAX_SHARE = (1 << 10, 1 << 20)
"""Calls and tokens. A worker waits for each share: a thousandth of the time that it takes to use so much."""
Used = tuple[int, int]
"""Calls, tokens; of what is not bounded the numbers mean nothing."""


class WorkerUsage(BoundedUsage):
    """What a worker has used. Its requests wait where that is as much as it may use.

    Args:
        budget: the run's.
        on_wait: called when a request waits; `allow` or `halt` is to follow.
    """

    def __init__(self, budget: Budget, on_wait: Callable[[], None]) -> None:
        super().__init__(replace(budget, max_time=None))  # the driver keeps the time
        self.bounded = budget != Budget()
        self._limit: Used = (0, 0)
        self._on_wait = on_wait
        self._reason: Exception | None = None
        self._changed = asyncio.Event()

    @property
    def used(self) -> Used:
        """(calls, tokens) since the process began."""
        return self.calls, self.tokens

    def allow(self, limit: Used) -> None:
        """It may use so much in all."""
        if limit != self._limit:
            self._limit = limit
            self._wake()

    def halt(self, reason: Exception) -> None:
        """No new call is to be made: requests that wait raise this, and all later ones; the first reason is kept."""
        self._reason = self._reason or reason
        if isinstance(self._reason, BudgetSpentError):
            self.exhausted = self._reason
        self._wake()

    def check(self) -> None:
        """Raises why no new call is to be made, where that is known."""
        if self._reason is not None:
            raise self._reason.with_traceback(None)
        self.check_counted()

    def check_time(self) -> None:
        if self.exhausted is not None and self.exhausted.by == "max_time":
            raise self.exhausted.with_traceback(None)

    async def take(self) -> None:
        """As `Usage.take`; waits while nothing is left of what the worker may use."""
        self.check()
        while _used_up(self.budget, self.used, self._limit):
            self._on_wait()
            await self._changed.wait()
            self.check()
        self._count(None if self.budget.max_calls is None else self._limit[0])

    def return_reserved(self) -> None:
        """Journal that calls which were reserved are not made. Raises `StorageError`."""
        if self.budget.max_calls is not None and self.write is not None and (rest := self.unjournaled(ending=True)):
            self.write(rest)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class SharedBudget:
    """The run's budget, as the driver divides it. No worker may use what another one may.

    Args:
        usage: what the run has used; it counts what workers report.
        workers: how many share what is left.
    """

    def __init__(self, usage: Usage, workers: int) -> None:
        self.usage, self.workers = usage, workers
        self._used: dict[int, Used] = {}
        self._limits: dict[int, Used] = {}

    def count(self, worker: int, used: Used) -> None:
        """What a worker has used since it began; less than it reported before changes nothing."""
        before = self._used.get(worker, (0, 0))
        now = self._used[worker] = max(before[0], used[0]), max(before[1], used[1])
        self.usage.calls += now[0] - before[0]
        self.usage.tokens += now[1] - before[1]

    def release(self, worker: int) -> None:
        """A worker has nothing to play, or is gone: what it has not used is left for others."""
        self._limits[worker] = self._used.get(worker, (0, 0))

    def used_up(self, worker: int) -> bool:
        """Whether a worker has used all that it may. Then its limit means nothing, also of the other kind."""
        return _used_up(self.usage.budget, self._used.get(worker, (0, 0)), self._limits.get(worker, (0, 0)))

    def limit(self, worker: int) -> Used:
        """What a worker may use in all: with a new share, where its own is used up and something is left."""
        if self.used_up(worker):
            used = self._limits[worker] = self._used.setdefault(worker, (0, 0))
            remaining = self._remaining()
            if min(remaining) > 0:
                calls, tokens = (
                    min(most, max(1, each // (2 * self.workers)))
                    for each, most in zip(remaining, MAX_SHARE, strict=True)
                )
                self._limits[worker] = used[0] + calls, used[1] + tokens
        return self._limits.get(worker, (0, 0))

    def check(self) -> None:
        """Raises `BudgetSpentError` when nothing is left, for any worker."""
        if all(self.used_up(worker) for worker in self._used):
            self.usage.check()

    def _remaining(self) -> tuple[int, int]:
        """Calls and tokens that are not yet assigned to a worker."""
        budget, usage = self.usage.budget, self.usage
        remaining = [
            (budget.max_calls or MAX_BUDGET) - usage.calls,
            (budget.max_tokens_total or MAX_BUDGET) - usage.tokens,
        ]
        for worker in self._used:
            if not self.used_up(worker):
                remaining = [remaining[kind] - self._limits[worker][kind] + self._used[worker][kind] for kind in (0, 1)]
        return remaining[0], remaining[1]


def _used_up(budget: Budget, used: Used, limit: Used) -> bool:
    no_calls = budget.max_calls is not None and used[0] >= limit[0]
    return no_calls or (budget.max_tokens_total is not None and used[1] >= limit[1])
