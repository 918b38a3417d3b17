"""A budget that several processes keep together: leases of a part of it, and the purse that they come from.

Every worker spends what it was granted, asks for more when that is used up, and its requests wait meanwhile. What
others were granted and have not spent is taken back before the budget counts as spent: so exactly as much is asked as
in one process. Knows nothing of Ray.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from harness.engines.budget import Budget, Usage
from harness.errors import BudgetSpentError

MOST = (1 << 10, 1 << 20)
"""Calls and tokens that are granted at once, at most: a thousandth of a second of the driver's time for each grant."""
Pair = tuple[int, int]
"""Calls, tokens; of what is not bounded the numbers mean nothing."""


class Lease(Usage):
    """A worker's tally: what it was granted of the run's budget, and what it has spent of that.

    Args:
        budget: the run's.
        wish: called when more is needed; `grant` or `halt` is to follow.

    Attributes:
        wants: whether somebody waits for more.
    """

    def __init__(self, budget: Budget, wish: Callable[[], None]) -> None:
        super().__init__(replace(budget, max_time=None))  # time is kept by one clock, the driver's
        self.bounded = budget != Budget()
        self.wants = False
        self._granted: Pair = (0, 0)
        self._wish = wish
        self._reason: Exception | None = None
        self._changed = asyncio.Event()

    @property
    def spent(self) -> Pair:
        """Since the process began."""
        return self.calls, self.tokens

    def grant(self, granted: Pair) -> None:
        """It may spend so much in all."""
        self._granted, self.wants = granted, False
        self._ring()

    def give_back(self) -> Pair:
        """Nothing more is granted than is spent; returns that. Raises `StorageError`."""
        if self.write is not None and (asked := self.unjournaled(ending=True)):
            self.write(asked)
        self._granted = self.spent
        return self.spent

    def halt(self, reason: Exception) -> None:
        """Nothing new is to be asked: who waits is told why, and who comes later; the first reason is kept."""
        self._reason = self._reason or reason
        if isinstance(self._reason, BudgetSpentError):
            self.over = self._reason
        self._ring()

    def check(self) -> None:
        """Raises why nothing new is to be asked, where that is known."""
        if self._reason is not None:
            raise self._reason.with_traceback(None)
        self.check_counted()

    def check_time(self) -> None:
        if self.over is not None and self.over.by == "max_time":
            raise self.over.with_traceback(None)

    async def take(self) -> None:
        """As `Usage.take`; waits for a grant."""
        self.check()
        while self._used_up():
            changed = self._changed
            if not self.wants:
                self.wants = True
                self._wish()
            await changed.wait()
            self.check()
        self._count(None if self.budget.max_calls is None else self._granted[0])

    def _used_up(self) -> bool:
        budget, granted = self.budget, self._granted
        no_calls = budget.max_calls is not None and self.calls >= granted[0]
        return no_calls or (budget.max_tokens_total is not None and self.tokens >= granted[1])

    def _ring(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class Holder(Protocol):
    """A worker, as the purse reaches it. Both return as soon as it has been reached, or is known to be lost."""

    async def grant(self, granted: Pair) -> None:
        """It may spend so much in all."""

    async def give_back(self) -> Pair | None:
        """It may spend nothing more than it has spent: returns that, or None if it is lost (`Purse.lost` follows)."""


@dataclass
class _Account:
    spent: Pair = (0, 0)
    granted: Pair = (0, 0)


class Purse:
    """The run's budget, of which workers have leases. `tally` counts what they tell.

    Args:
        tally: the run's, which knows what earlier processes spent.
        workers: how many share what is left.
    """

    def __init__(self, tally: Usage, workers: int) -> None:
        self.tally, self.workers = tally, workers
        self._most = (tally.budget.max_calls, tally.budget.max_tokens_total)
        self._accounts: dict[int, _Account] = {}
        self._wanting: dict[int, None] = {}  # in the order in which they came
        self._changed = asyncio.Event()

    def told(self, worker: int, spent: Pair, wants: bool = False) -> None:
        """What a worker has spent since it began, and whether it waits for more. What it told before may come after."""
        account = self._accounts.setdefault(worker, _Account())
        before, account.spent = account.spent, _most(account.spent, spent)
        self.tally.calls += account.spent[0] - before[0]
        self.tally.tokens += account.spent[1] - before[1]
        if wants:
            self._wanting[worker] = None
            self._changed.set()

    def lost(self, worker: int, spent: Pair) -> None:
        """A worker is gone; its journal shows what it has spent. The rest of its lease is granted again."""
        self.told(worker, spent)
        del self._accounts[worker]
        self._wanting.pop(worker, None)
        self._changed.set()

    async def serve(self, holders: Mapping[int, Holder]) -> BudgetSpentError:
        """Grant what is wanted until nothing is left, and return that then. `holders` are the workers as they are.

        Raises `EngineFatalError` as `Usage.check`.
        """
        while True:
            self._changed.clear()
            granted = self._grants()
            await asyncio.gather(
                *(holders[worker].grant(most) for worker, most in granted.items() if worker in holders)
            )
            if self._wanting and (granted or await self._taken_back(holders)):
                continue
            if self._wanting:
                try:
                    self.tally.check()  # else what is left is held by somebody lost, and comes back
                except BudgetSpentError as spent:
                    return spent
            await self._changed.wait()

    def _grants(self) -> dict[int, Pair]:
        """Worker → what it may have spent in all, for those that can be given something of all that they need."""
        made: dict[int, Pair] = {}
        for worker in list(self._wanting):
            account = self._accounts[worker]
            calls, tokens = self._more(account, 0), self._more(account, 1)
            if calls is not None and tokens is not None:
                del self._wanting[worker]
                account.granted = made[worker] = (calls, tokens)
        return made

    def _more(self, account: _Account, kind: int) -> int | None:
        """What an account may have spent in all: a share of what is left, which shrinks with it. None: nothing new."""
        most, spent, granted = self._most[kind], account.spent[kind], account.granted[kind]
        if most is None or granted > spent:
            return granted
        unspent = sum(max(0, other.granted[kind] - other.spent[kind]) for other in self._accounts.values())
        left = most - (self.tally.calls, self.tally.tokens)[kind] - unspent
        return spent + min(MOST[kind], max(1, left // (2 * self.workers))) if left > 0 else None

    async def _taken_back(self, holders: Mapping[int, Holder]) -> bool:
        """Take back what is granted and not spent; whether there was anything."""
        rich = [worker for worker, account in self._accounts.items() if worker in holders and self._unspent(account)]
        answers = await asyncio.gather(*(holders[worker].give_back() for worker in rich))
        for worker, spent in zip(rich, answers, strict=True):
            if spent is not None and worker in self._accounts:
                self.told(worker, spent)
                self._accounts[worker].granted = self._accounts[worker].spent
        return any(spent is not None for spent in answers)

    def _unspent(self, account: _Account) -> bool:
        return any(
            most is not None and granted > spent
            for most, granted, spent in zip(self._most, account.granted, account.spent, strict=True)
        )


def _most(one: Pair, other: Pair) -> Pair:
    return max(one[0], other[0]), max(one[1], other[1])
