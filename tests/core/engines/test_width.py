"""How many requests at once the gate sends to a server that does not say how many it works on."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api import Completion, Request
from harness.engines.gate import Gate
from harness.engines.mock import Mock
from harness.engines.width import MIN_WIDTH, START, Width
from tests.conftest import request
from tests.helpers.skipped_time import skipping

SEED = 1


class Server(Mock):
    """Works on so many requests at once, each for a second or so; the others wait in their order."""

    queues_unseen = True

    def __init__(self, slots: Callable[[float], int], clock: Callable[[], float], says: int | None = None) -> None:
        super().__init__(text="a")
        self.slots, self.clock, self.says = slots, clock, says
        self.working = self.has = self.most = 0
        self.free = asyncio.Condition()
        self.random = random.Random(SEED)
        self.held: list[int] = []

    @property
    def width(self) -> int | None:
        return self.says

    async def complete(self, request: Request) -> Completion:
        self.has += 1
        self.most = max(self.most, self.has)
        self.held.append(self.has)
        async with self.free:
            await self.free.wait_for(lambda: self.working < self.slots(self.clock()))
            self.working += 1
        await asyncio.sleep(self.random.uniform(0.5, 1.5))
        async with self.free:
            self.working -= 1
            self.free.notify_all()
        self.has -= 1
        return Completion("a", output_tokens=10)


def served(
    slots: Callable[[float], int], count: int, most: int = 256, adapts: bool = True, says: int | None = None
) -> tuple[Server, float]:
    """The server behind a gate that has answered so many requests of 400 conversations, and the seconds it took."""

    async def main(clock: Callable[[], float]) -> tuple[Server, float]:
        server = Server(slots, clock, says)
        gate = Gate(server, most, adapts=adapts)
        gate._width = gate._width and Width(most, clock)
        left = iter(range(count))

        async def talk() -> None:
            for k in left:
                await gate.complete(request("?", key=k))

        await asyncio.gather(*(talk() for _ in range(400)))
        return server, clock()

    return skipping(main)


def test_a_server_of_two_slots_has_few_requests_waiting() -> None:
    server, seconds = served(lambda now: 2, 600)
    assert server.most <= 2 * START, "256 would wait there for two minutes"
    assert max(server.held[400:]) <= START, "and fewer, once it is known"
    assert seconds < 1.1 * 600 / 2, "it is never idle"


def test_a_server_of_many_slots_gets_many() -> None:
    server, seconds = served(lambda now: 1000, 8000)
    assert server.most == 256 and min(server.held[-1000:-300]) > 128
    assert seconds < 8000 / 256 + 20, "a few seconds to find it out"


def test_a_server_that_becomes_slower_gets_fewer() -> None:
    server, _ = served(lambda now: 1000 if now < 15 else 2, 1500, most=64)
    assert server.most == 64 and max(server.held[-100:]) <= 32


def test_a_number_that_is_given_is_taken() -> None:
    server, _ = served(lambda now: 2, 300, most=64, adapts=False)
    assert server.most == 64


def test_a_server_that_says_how_many_it_works_on_gets_as_many() -> None:
    server, seconds = served(lambda now: 5, 300, says=5)
    assert server.most == 5 and seconds < 1.1 * 300 / 5
    server, _ = served(lambda now: 5, 100, most=3, adapts=False, says=5)
    assert server.most == 3, "and no more than the user wants"


@given(st.integers(1, 300), st.lists(st.tuples(st.integers(0, 5), st.floats(0, 9), st.booleans()), max_size=200))
def test_no_answers_lead_beyond_the_bounds(most: int, answers: list[tuple[int, float, bool]]) -> None:
    now = 0.0
    width = Width(most, lambda: now)
    for tokens, seconds, full in answers:
        now += seconds
        width.answered(tokens, width.now, int(full))
        assert min(MIN_WIDTH, most) <= width.now <= most


@pytest.mark.parametrize("busy", [(5, 0), (3, 9), (40, 9)])
def test_what_does_not_fill_the_width_says_nothing_of_it(busy: tuple[int, int]) -> None:
    width = Width(256, lambda: 0.0)
    for _ in range(1000):
        width.answered(10, *busy)
    assert width.now == START
