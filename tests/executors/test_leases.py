"""A budget that several workers keep together; no cluster is needed."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api import Completion
from harness.engines.budget import RESERVED, Budget, Usage
from harness.engines.mock import Mock
from harness.errors import BudgetSpentError, EngineFatalError, StorageError
from harness.executors._lease import Lease, Purse

# ------------------------------------------------------------------------------------- lease and purse

ENGINE = Mock(text="a")


def leased(budget: Budget, wish: Callable[[], None], write: Callable[[list[int]], None]) -> Lease:
    lease = Lease(budget, wish)
    lease.write = write
    return lease


class Member:
    """A worker of a purse without any machinery: a lease, a journal, and calls of 0 to 11 tokens to make."""

    def __init__(self, number: int, purse: Purse, budget: Budget, calls: int, width: int) -> None:
        self.number, self.purse, self.left, self.width = number, purse, calls, width
        self.lease = leased(budget, self.tell, self.write)
        self.journal = [0, 0]
        self.asked = self.flying = self.most = 0
        self.dead = False
        self.chance = random.Random(number)
        self.tasks = [asyncio.create_task(self.play()) for _ in range(width)]

    async def play(self) -> None:
        while self.left:
            self.left -= 1
            await self.lease.take()
            self.asked += 1
            for _ in range(self.chance.choice((1, 1, 1, 9, 30))):
                await asyncio.sleep(0)
            tokens = self.chance.choice((0, 1, 11))
            self.lease.answered(Completion("a", input_tokens=tokens, output_tokens=0), ENGINE)
            if asked := self.lease.unjournaled():
                self.write(asked)

    def tell(self) -> None:
        asyncio.get_running_loop().call_soon(self.told)

    def told(self) -> None:
        if not self.dead:
            self.purse.told(self.number, self.lease.spent, self.lease.wants)

    def write(self, asked: list[int]) -> None:
        self.journal = [self.journal[0] + asked[0], self.journal[1] + asked[1]]

    async def grant(self, granted: tuple[int, int]) -> None:
        await asyncio.sleep(0)
        if not self.dead:
            self.lease.grant(granted)

    async def give_back(self) -> tuple[int, int] | None:
        await asyncio.sleep(0)
        return None if self.dead else self.lease.give_back()

    async def die(self) -> None:
        """As by kill -9: nothing more is written."""
        self.dead = True
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def played(budget: Budget, before: int, demands: list[int], deaths: set[int]) -> tuple[Usage, list[Member], Any]:
    """Workers with so many calls to make each; some die on their way, and are found dead later."""
    tally = Usage(budget, before, 0)
    purse = Purse(tally, len(demands))
    members = {n: Member(n, purse, budget, calls, width=1 + n % 3) for n, calls in enumerate(demands)}
    serving = asyncio.create_task(purse.serve(members))

    async def killer() -> None:
        for number in deaths:
            for _ in range(5):
                await asyncio.sleep(0)
            member = members[number]
            await member.die()
            for _ in range(3):
                await asyncio.sleep(0)
            del members[number]
            lost.append(member)
            purse.lost(number, cast("tuple[int, int]", tuple(member.journal)))

    lost: list[Member] = []
    killing = asyncio.create_task(killer())
    everything = asyncio.gather(*(task for m in members.values() for task in m.tasks), return_exceptions=True)
    either: set[asyncio.Future[Any]] = {serving, everything}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    await killing
    if not serving.done():
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    over = serving.result() if serving.done() else None
    serving.cancel()
    everyone = [*members.values(), *lost]
    for member in everyone:
        member.lease.halt(over or EngineFatalError("another one is gone"))
        if not member.dead:
            await asyncio.gather(*member.tasks, return_exceptions=True)
            member.told()
            if rest := member.lease.unjournaled(ending=True):
                member.write(rest)
    return tally, everyone, over


DEMANDS = st.lists(st.integers(0, 120), min_size=1, max_size=5)


@given(st.integers(1, 300), st.integers(0, 20), DEMANDS)
def test_workers_together_ask_exactly_what_they_may(most: int, before: int, demands: list[int]) -> None:
    tally, members, over = asyncio.run(played(Budget(max_calls=most), before, demands, set()))
    asked = sum(member.asked for member in members)
    assert asked == min(sum(demands), max(0, most - before)), "not one more, and not one less"
    assert tally.calls == before + asked and sum(member.journal[0] for member in members) == asked
    assert (over is not None) == (sum(demands) > max(0, most - before))
    assert over is None or (over.by, over.at) == ("max_calls", most)


@given(st.integers(1, 300), DEMANDS, st.sets(st.integers(0, 4)))
def test_never_more_is_asked_whoever_dies(most: int, demands: list[int], deaths: set[int]) -> None:
    """What a lost worker wrote down is at least what it asked; all the rest is granted to others."""
    deaths = {number for number in deaths if number < len(demands)}
    tally, members, over = asyncio.run(played(Budget(max_calls=most), 0, demands, deaths))
    asked = sum(member.asked for member in members)
    assert all(member.asked <= member.journal[0] < member.asked + RESERVED for member in members)
    assert asked <= tally.calls == sum(member.journal[0] for member in members) <= most
    if over is not None:
        assert tally.calls == most
    else:
        assert all(member.left == 0 for member in members if not member.dead)


@given(st.integers(1, 1500), DEMANDS, st.integers(1, 400))
def test_tokens_end_where_they_reach_the_bound(most: int, demands: list[int], calls: int) -> None:
    budget = Budget(max_tokens_total=most, max_calls=calls)
    tally, members, over = asyncio.run(played(budget, 0, demands, set()))
    assert sum(member.asked for member in members) == tally.calls <= calls
    assert tally.tokens == sum(member.journal[1] for member in members)
    assert tally.tokens < most + 11 * sum(member.width for member in members), "what is in flight comes on top"
    if over is not None:
        assert {"max_calls": tally.calls, "max_tokens_total": tally.tokens}[over.by] >= over.at
    else:
        assert all(member.left == 0 for member in members)


def in_loop(act: Callable[[], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        return await act()

    return asyncio.run(run())


class Doomed(Member):
    """Lost while a grant is on its way to it."""

    async def grant(self, granted: tuple[int, int]) -> None:
        await self.die()


def test_a_grant_for_who_is_lost_goes_to_others() -> None:
    async def act() -> int:
        purse = Purse(Usage(Budget(max_calls=10)), 2)
        dead = Doomed(0, purse, Budget(max_calls=10), calls=8, width=1)
        living = Member(1, purse, Budget(max_calls=10), calls=20, width=1)
        serving = asyncio.create_task(purse.serve({0: dead, 1: living}))
        while living.asked < 8 or not dead.dead:
            await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        assert not serving.done(), "what the other one holds may come back"
        purse.lost(0, (0, 0))
        assert (await serving).by == "max_calls"
        living.lease.halt(EngineFatalError("so that it ends"))
        await asyncio.gather(*living.tasks, return_exceptions=True)
        return living.asked

    assert in_loop(act) == 10


def test_who_is_lost_wants_nothing_and_old_news_change_nothing() -> None:
    async def act() -> None:
        purse = Purse(Usage(Budget(max_calls=3)), 2)
        purse.told(0, (2, 20), wants=True)
        purse.told(0, (1, 10))
        assert (purse.tally.calls, purse.tally.tokens) == (2, 20)
        purse.lost(0, (3, 20))
        purse.told(1, (0, 0), wants=True)
        assert (await purse.serve({})).at == 3
        assert (purse.tally.calls, purse.tally.tokens) == (3, 20)

    in_loop(act)


def test_what_is_given_back_is_not_asked() -> None:
    async def act() -> None:
        written: list[list[int]] = []
        lease = leased(Budget(max_calls=50), lambda: None, written.append)
        lease.grant((50, 0))
        await lease.take()
        assert lease.give_back() == (1, 0) and written == [[3, 0], [-2, 0]], "journaled before they are asked"
        waiting = asyncio.create_task(lease.take())
        for _ in range(5):
            await asyncio.sleep(0)
        assert lease.wants and not waiting.done()
        lease.grant((2, 0))
        await waiting
        assert (
            lease.spent == (2, 0)
            and not lease.wants
            and written[2:] == [[1, 0]]
            and lease.unjournaled(ending=True) is None
        )

    in_loop(act)


def test_a_count_that_cannot_be_written_is_not_asked() -> None:
    """The disk is full: what is asked could not be known any more."""

    async def act() -> Lease:
        def write(asked: list[int]) -> None:
            raise StorageError("no room")

        lease = leased(Budget(max_calls=5), lambda: None, write)
        lease.grant((5, 0))
        for _ in range(2):
            with pytest.raises(StorageError):
                await lease.take()
        return lease

    assert in_loop(act).spent == (0, 0)


def test_the_first_reason_to_end_is_kept() -> None:
    async def act() -> None:
        lease = leased(Budget(max_calls=5), lambda: None, lambda asked: None)
        waiting = [asyncio.create_task(lease.take()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        lease.halt(BudgetSpentError("max_calls", 5))
        lease.halt(EngineFatalError("gone"))
        lease.grant((5, 0))
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(end) for end in ended] == [asyncio.CancelledError, BudgetSpentError, BudgetSpentError]
        assert lease.over is ended[1] and lease.calls == 0
        lease.check_time()  # there is no end of it

    in_loop(act)
