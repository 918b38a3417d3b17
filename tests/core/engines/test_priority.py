"""The gate before an engine: the oldest conversation first, and no request waits forever."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness.api import Engine, Request, Thread
from harness.engines.gate import Gate
from harness.engines.mock import Mock
from harness.engines.priority import PriorityGate


async def settle() -> None:
    """Let everything run that can run without the engine."""
    for _ in range(50):
        await asyncio.sleep(0)


def test_the_oldest_conversation_goes_first_and_its_later_threads_with_it() -> None:
    served: list[str] = []

    async def answer(asked: Request) -> str:
        served.append(asked.id)
        await asyncio.sleep(0)
        return "yes"

    async def main() -> None:
        old, middle, new = Thread(), Thread(), Thread()
        again = Thread(old.age)  # opened last, by an agent of the oldest episode
        engine = Gate(Mock(function=answer), 1)
        threads = {"first": new, "new": new, "middle": middle, "again": again, "old": old}
        await asyncio.gather(*(engine.complete(Request(name, t, {}, 0)) for name, t in threads.items()))

    asyncio.run(main())
    assert served == ["first", "again", "old", "middle", "new"]


@given(
    requests=st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.integers(0, 3)), max_size=30),
    answers=st.lists(st.booleans(), min_size=1, max_size=40),
)
def test_every_request_passes_whatever_is_admitted_and_cancelled(
    requests: list[tuple[int, bool, int]], answers: list[bool]
) -> None:
    """`requests`: (age, is cancelled, waits so long); `answers`: what `admits` says, in turns."""
    calls = 0

    def admits(flying: int) -> bool:
        nonlocal calls
        calls += 1
        return answers[calls % len(answers)]

    done: list[int] = []

    async def one(gate: PriorityGate, number: int, age: int, steps: int) -> None:
        await gate.enter(age)
        try:
            for _ in range(steps):
                await asyncio.sleep(0)
            done.append(number)
        finally:
            gate.leave()

    async def main() -> None:
        gate = PriorityGate(admits)
        tasks = [asyncio.create_task(one(gate, i, age, steps)) for i, (age, _, steps) in enumerate(requests)]
        await asyncio.sleep(0)
        for task, (_, cancelled, _) in zip(tasks, requests, strict=True):
            if cancelled:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert gate.in_flight == 0

    asyncio.run(main())
    assert {i for i, (_, cancelled, _) in enumerate(requests) if not cancelled} <= set(done)


class OneAtATime(Engine):
    """Runs at most eight requests and finishes them one by one, in any order; notes how many it had each time."""

    model = "one-at-a-time"

    def __init__(self) -> None:
        self.running: list[tuple[Request, asyncio.Future[str]]] = []
        self.had: list[tuple[int, frozenset[str]]] = []
        self.asked: list[str] = []

    async def start(self) -> None:
        self.stepping = asyncio.create_task(self.step())

    async def close(self) -> None:
        self.stepping.cancel()
        await asyncio.gather(self.stepping, return_exceptions=True)

    async def step(self) -> None:
        rng = random.Random(0)
        while True:
            await settle()
            if self.running:
                self.had.append((len(self.running), frozenset(r.id.rsplit("/", 3)[0] for r, _ in self.running)))
                self.running.pop(rng.randrange(len(self.running)))[1].set_result("### Final Answer ### 0")

    async def complete(self, request: Request) -> harness.api.Completion:
        self.asked.append(request.id.rsplit("/", 3)[0])
        done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.running.append((request, done))
        return harness.api.Completion(await done)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> OneAtATime:
    """Twenty episodes of four agents with three barriers, eight requests at a time."""
    engine = OneAtATime()
    spec = {
        "name": "barriers",
        "extends": "agentsnet",
        "task": {"graphs": "small_world", "size": 4},
        "protocol": {"rounds": 2, "parse_retries": 0},
        "matrix": {"problem": ["consensus"], "graphs": None, "size": None},
        "repeats": 20,
        "limit": 1,
        "tables": [],
    }
    folder: Path = tmp_path_factory.mktemp("run")
    run = harness.evaluate(spec, engine, output_path=folder / "r", max_concurrency=8)
    assert len(run.scores) == 20 and not run.failed
    return engine


def test_a_barrier_never_idles_the_engine_while_another_episode_can_run(played: OneAtATime) -> None:
    assert len(played.had) == 20 * 4 * 3
    last = {episode: i for i, (_, episodes) in enumerate(played.had) for episode in episodes}
    for i, (running, _) in enumerate(played.had):
        unfinished = sum(end >= i for end in last.values())
        # Every unfinished episode has at least one agent to ask, whatever its barrier waits for.
        assert running >= min(8, unfinished), f"step {i}: {running} running with {unfinished} episodes unfinished"


def test_episodes_are_finished_before_many_more_are_begun(played: OneAtATime) -> None:
    items = list(dict.fromkeys(played.asked))
    end = {episode: len(played.asked) - played.asked[::-1].index(episode) for episode in items}
    halfway = len(played.asked) // 2
    assert sum(end[episode] <= halfway for episode in items) >= 6, "the oldest were played to their end"
