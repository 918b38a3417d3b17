"""A budget that several workers share; no cluster is needed."""

import asyncio
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api import Completion
from harness.api.errors import BudgetSpentError, EngineFatalError, StorageError
from harness.engines.bounded_usage import RESERVED, BoundedUsage
from harness.engines.mock import Mock
from harness.engines.usage import Budget
from harness.extensions.ray._budget import SharedBudget, Used, WorkerUsage

ENGINE = Mock(text="a")


class Member:
    """A worker without any machinery: its usage, a journal, and calls of 0 to 11 tokens to make."""

    def __init__(self, number: int, run: "Run", calls: int) -> None:
        self.number, self.run, self.left, self.width = number, run, calls, 1 + number % 3
        self.usage = WorkerUsage(run.usage.budget, run.news.set)
        self.usage.write = self.write
        self.journal: Used = (0, 0)
        self.asked = 0
        self.dead = False
        self.chance = random.Random(number)
        self.tasks = [asyncio.create_task(self.play()) for _ in range(self.width)]

    @property
    def idle(self) -> bool:
        return all(task.done() for task in self.tasks)

    async def play(self) -> None:
        while self.left:
            self.left -= 1
            await self.usage.take()
            self.asked += 1
            for _ in range(self.chance.choice((1, 1, 1, 9, 30))):
                await asyncio.sleep(0)
            tokens = self.chance.choice((0, 1, 11))
            self.usage.answered(Completion("a", input_tokens=tokens, output_tokens=0), ENGINE)
            if more := self.usage.unjournaled():
                self.write(more)
        self.run.news.set()

    def write(self, more: list[int]) -> None:
        self.journal = self.journal[0] + more[0], self.journal[1] + more[1]

    async def die(self) -> None:
        """As by kill -9: nothing more is written."""
        self.dead = True
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


class Run:
    """A driver without any machinery: it counts what members report, and gives them new shares."""

    def __init__(self, budget: Budget, before: int, demands: list[int]) -> None:
        self.usage = BoundedUsage(budget, before)
        self.budget = SharedBudget(self.usage, len(demands))
        self.news = asyncio.Event()
        self.members = [Member(number, self, calls) for number, calls in enumerate(demands)]

    async def play(self, deaths: set[int]) -> BudgetSpentError | None:
        """Until all is asked (None), or the budget is used up."""
        killing = asyncio.create_task(self.kill(deaths))
        self.news.set()
        over = None
        while over is None and not (killing.done() and all(member.idle for member in self.members)):
            await self.news.wait()
            self.news.clear()
            await asyncio.sleep(0)
            over = self.share()
        await killing
        for member in self.members:
            member.usage.halt(over or EngineFatalError("another one is gone"))
            if not member.dead:
                await asyncio.gather(*member.tasks, return_exceptions=True)
                if rest := member.usage.unjournaled(ending=True):
                    member.write(rest)
            self.budget.count(member.number, member.journal)
        return over

    def share(self) -> BudgetSpentError | None:
        for member in self.members:
            if member.dead or member.idle:
                self.budget.count(member.number, member.journal if member.dead else member.usage.used)
                self.budget.release(member.number)
                if not member.dead:
                    member.usage.return_reserved()
            else:
                self.budget.count(member.number, member.usage.used)
        for member in self.members:
            if not (member.dead or member.idle):
                member.usage.allow(self.budget.limit(member.number))
        try:
            self.budget.check()
        except BudgetSpentError as spent:
            return spent
        return None

    async def kill(self, deaths: set[int]) -> None:
        for number in deaths:
            for _ in range(5):
                await asyncio.sleep(0)
            await self.members[number].die()
            self.news.set()
        self.news.set()


def played(budget: Budget, before: int, demands: list[int], deaths: set[int]) -> tuple[Run, BudgetSpentError | None]:
    """Workers with so many calls to make each; some die on their way."""

    async def act() -> tuple[Run, BudgetSpentError | None]:
        run = Run(budget, before, demands)
        return run, await run.play(deaths)

    return asyncio.run(act())


DEMANDS = st.lists(st.integers(0, 120), min_size=1, max_size=5)


@given(st.integers(1, 300), st.integers(0, 20), DEMANDS)
def test_workers_together_make_as_many_calls_as_they_may(most: int, before: int, demands: list[int]) -> None:
    run, over = played(Budget(max_calls=most), before, demands, set())
    total = sum(member.asked for member in run.members)
    assert total == min(sum(demands), max(0, most - before)), "not one more, and not one less"
    assert run.usage.calls == before + total and sum(member.journal[0] for member in run.members) == total
    if over is None:
        assert total == sum(demands)
    else:
        assert (over.by, over.at) == ("max_calls", most) and total == max(0, most - before)


@given(st.integers(1, 300), DEMANDS, st.sets(st.integers(0, 4)))
def test_never_more_is_asked_when_workers_die(most: int, demands: list[int], deaths: set[int]) -> None:
    """The journal of a lost worker shows at least the calls that it made; the rest of its share is left for others."""
    deaths = {number for number in deaths if number < len(demands)}
    run, over = played(Budget(max_calls=most), 0, demands, deaths)
    total = sum(member.asked for member in run.members)
    assert all(member.asked <= member.journal[0] < member.asked + RESERVED for member in run.members)
    assert total <= run.usage.calls == sum(member.journal[0] for member in run.members) <= most
    if over is not None:
        assert run.usage.calls == most
    else:
        assert all(member.left == 0 for member in run.members if not member.dead)


@given(st.integers(1, 1500), DEMANDS, st.integers(1, 400))
def test_tokens_end_where_they_reach_the_bound(most: int, demands: list[int], calls: int) -> None:
    run, over = played(Budget(max_tokens_total=most, max_calls=calls), 0, demands, set())
    assert sum(member.asked for member in run.members) == run.usage.calls <= calls
    assert run.usage.tokens == sum(member.journal[1] for member in run.members)
    assert run.usage.tokens < most + 11 * sum(member.width for member in run.members), "calls in flight come on top"
    if over is not None:
        assert {"max_calls": run.usage.calls, "max_tokens_total": run.usage.tokens}[over.by] >= over.at
    else:
        assert all(member.left == 0 for member in run.members)


def test_an_older_report_changes_nothing() -> None:
    budget = SharedBudget(BoundedUsage(Budget(max_calls=3)), 2)
    budget.count(0, (2, 20))
    budget.count(0, (1, 10))
    assert (budget.usage.calls, budget.usage.tokens) == (2, 20)
    budget.check()
    budget.count(0, (3, 20))
    with pytest.raises(BudgetSpentError, match="max_calls 3"):
        budget.check()


def test_a_worker_waits_for_what_another_one_has_not_used() -> None:
    budget = SharedBudget(BoundedUsage(Budget(max_calls=2)), 2)
    assert budget.limit(0) == (1, 1 << 20) and budget.limit(1) == (1, 1 << 20)
    budget.count(0, (1, 0))
    assert budget.limit(0)[0] == 1
    budget.check()  # the other one may make a call
    budget.release(1)
    assert budget.limit(0)[0] == 2


def test_a_count_that_cannot_be_written_is_not_asked() -> None:
    """The disk is full: what is asked could not be known any more."""

    async def act() -> WorkerUsage:
        def write(asked: list[int]) -> None:
            raise StorageError("no room")

        usage = WorkerUsage(Budget(max_calls=5), lambda: None)
        usage.write = write
        usage.allow((5, 0))
        for _ in range(2):
            with pytest.raises(StorageError):
                await usage.take()
        return usage

    assert asyncio.run(act()).used == (0, 0)


def test_the_first_reason_to_end_is_kept() -> None:
    async def act() -> None:
        usage = WorkerUsage(Budget(max_calls=5), lambda: None)
        waiting = [asyncio.create_task(usage.take()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        usage.halt(BudgetSpentError("max_calls", 5))
        usage.halt(EngineFatalError("gone"))
        usage.allow((5, 0))
        ended: list[Any] = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(end) for end in ended] == [asyncio.CancelledError, BudgetSpentError, BudgetSpentError]
        assert usage.exhausted is ended[1] and usage.calls == 0
        usage.check_time()  # there is no end of it

    asyncio.run(act())
