"""A worker and its share of the budget; no cluster is needed."""

import asyncio
from pathlib import Path
from typing import Any, ClassVar

import pytest

import harness
from harness import storage
from harness.api.errors import BudgetSpentError, EngineFatalError
from harness.config.plan import Plan, episode_id
from harness.engines.mock import Mock
from harness.extensions.ray._worker import Worker, WorkerUpdate
from harness.runtime.options import Options
from tests.extensions.ray.workers import Dice, Slow, assigned, with_worker
from tests.helpers.toy import TOY


def asked(folder: Path) -> tuple[int, int]:
    """Calls and tokens that the journals tell of."""
    progress = storage.JournalState(*storage.journals(folder))
    return progress.calls, progress.tokens


async def until(used: tuple[int, int], worker: Worker) -> None:
    """Until a worker reports at least so many calls and tokens."""
    while True:
        update = await worker.updates()
        assert update.failure is None
        if update.used[0] >= used[0] and update.used[1] >= used[1]:
            return


async def answers(times: int) -> None:
    """Until so many were asked for, and all others that the limit allows would have been."""
    while len(Slow.asked) < times:
        await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize("bounds", [{"max_calls": 100}, {"max_tokens_total": 1000}])
def test_a_worker_asks_as_much_as_it_may(tmp_path: Path, bounds: dict[str, Any]) -> None:
    bounded = "max_calls" in bounds
    seen: list[int] = []

    async def act(worker: Worker, made: Plan) -> None:
        await worker.add(assigned(made), (0, 0))
        for calls, tokens in ((1, 11), (4, 33), (9, 100)):
            await worker.add([], (calls, tokens))
            await until((calls, 0) if bounded else (0, tokens), worker)
            for _ in range(50):
                await asyncio.sleep(0)
            seen.append(asked(tmp_path)[0 if bounded else 1])
        await worker.add([], (1000, 1000))
        while len(storage.JournalState(*storage.journals(tmp_path)).ends) < 8:
            assert (await worker.updates()).failure is None

    with_worker(tmp_path, Dice(), act, options=Options(max_concurrency=2, **bounds))
    if bounded:
        assert seen == [1, 4, 9], "reserved in the journal before they are asked, and never more than the limit"
    else:
        assert all(most <= used < most + 2 * 11 for most, used in zip((11, 33, 100), seen, strict=True))


def test_a_worker_that_has_nothing_to_play_returns_what_it_reserved(tmp_path: Path) -> None:
    async def act(worker: Worker, made: Plan) -> tuple[int, int]:
        await worker.add(assigned(made)[:1], (900, 0))
        while not (update := await worker.updates()).scores:
            pass
        return update.used[0], asked(tmp_path)[0]

    used, journaled = with_worker(tmp_path, Dice(), act, options=Options(max_concurrency=2, max_calls=1000))
    assert 0 < used == journaled < 32


def test_interrupted_calls_count(tmp_path: Path) -> None:
    async def act(worker: Worker, made: Plan) -> None:
        Slow.asked.clear()
        Slow.let = asyncio.Event()
        await worker.add(assigned(made), (90, 0))
        await answers(2)
        assert asked(tmp_path) == (5, 0), "reserved in the journal"

    with_worker(tmp_path, Slow(text="a"), act, options=Options(max_concurrency=2, max_calls=90))
    assert asked(tmp_path) == (len(Slow.asked), 0) == (2, 0)


@pytest.mark.parametrize("why", ["why ever", BudgetSpentError("max_calls", 100), BudgetSpentError("max_time", 5.0)])
@pytest.mark.parametrize("bounds", [{"max_calls": 100, "max_time": 5}, {"max_tokens_total": 1000}])
def test_requests_that_wait_for_a_share_end_with_the_run(tmp_path: Path, why: Any, bounds: dict[str, Any]) -> None:
    async def act(worker: Worker, made: Plan) -> WorkerUpdate:
        Slow.asked.clear()
        Slow.let = asyncio.Event()
        await worker.add(assigned(made), (1, 1))
        await answers(1 if "max_calls" in bounds else 2)  # of two that are played one is in flight, the other waits
        ending = asyncio.ensure_future(worker.end(why))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not ending.done(), "an answer in flight is waited for"
        Slow.let.set()
        return await ending

    update = with_worker(tmp_path, Slow(text="a"), act, options=Options(max_concurrency=2, **bounds))
    assert update.failure is None and update.scores == []
    lines = [line for _, line in storage.lines(tmp_path / "journal-7.jsonl")]
    assert sum(len(line.get("calls", ())) for line in lines) == len(Slow.asked) == update.used[0] == asked(tmp_path)[0]


def test_what_needs_nothing_new_is_played_when_the_budget_is_spent(tmp_path: Path) -> None:
    """The rest is reported as paused; nothing is asked, and the engine, which is out of order, is not started."""
    whole = tmp_path / "whole"
    harness.evaluate("toy", Dice(), project=TOY, output_path=whole)
    mapping = {name: moves for name, moves in moves_of(whole).items() if "/c1/" in name}
    assert len(mapping) == 2

    async def act(worker: Worker, made: Plan) -> tuple[set[str], set[str], WorkerUpdate]:
        inputs: list[Any] = [
            (c.id, case, r, mapping.get(episode_id(c, case, r), {}), []) for c, case, r in made.episodes()
        ]
        await worker.add(inputs, (0, 0))
        scores: set[str] = set()
        paused: set[str] = set()
        while len(scores) + len(paused) < len(inputs):
            update = await worker.updates()
            assert update.failure is None
            scores |= {score.id for score in update.scores}
            paused |= set(update.paused)
        return scores, paused, await worker.end()

    options = Options(max_concurrency=2, max_calls=9)
    spent = BudgetSpentError("max_calls", 9)
    finished, rest, last = with_worker(tmp_path, Dice(broken_start=True), act, options=options, spent=spent)
    assert finished == set(mapping) and len(rest) == 6 and (last.failure, last.used) == (None, (0, 0))
    assert set(storage.JournalState(*storage.journals(tmp_path)).ends) == finished


class Patient(Mock):
    """Tries again without end, until it is told that the run is over."""

    tries: ClassVar[int] = 0
    over: ClassVar[asyncio.Future[None]]

    async def complete(self, request: Any) -> Any:
        Patient.tries += 1
        await asyncio.shield(Patient.over)

    def stop_retrying(self, reason: Exception) -> None:
        if not Patient.over.done():
            Patient.over.set_exception(reason)


def test_time_that_is_over_ends_a_workers_tries_that_wait(tmp_path: Path) -> None:
    async def act(worker: Worker, made: Plan) -> WorkerUpdate:
        Patient.tries, Patient.over = 0, asyncio.get_running_loop().create_future()
        await worker.add(assigned(made), (0, 0))
        while Patient.tries < 2:
            await asyncio.sleep(0)
        return await worker.end(BudgetSpentError("max_time", 5))

    last = with_worker(tmp_path, Patient(text="a"), act, options=Options(max_concurrency=2, max_time=5))
    assert (last.scores, last.paused, last.failure) == ([], [], None)
    assert last.used == asked(tmp_path) == (2, 0)


def test_a_worker_that_cannot_count_tokens_stops_the_run(tmp_path: Path) -> None:
    async def act(worker: Worker, made: Plan) -> Any:
        await worker.add(assigned(made), (0, 1000))
        while (failure := (await worker.updates()).failure) is None:
            pass
        return failure

    options = Options(max_concurrency=2, max_tokens_total=1000)
    failure = with_worker(tmp_path, Mock(text="a"), act, options=options)
    assert isinstance(failure, EngineFatalError) and "does not say how many tokens" in str(failure)


def moves_of(folder: Path) -> dict[str, Any]:
    """Episode → its moves, as if it had not come to its end."""
    bare = folder.with_name(f"{folder.name}-moves.jsonl")
    lines = [raw for raw in (folder / "journal.jsonl").read_text().splitlines() if '"k":"end"' not in raw]
    bare.write_text("\n".join(lines) + "\n")
    return storage.JournalState(bare).moves
