"""A worker that may ask as much as it is granted; no cluster is needed."""

import asyncio
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

import harness
from harness import storage
from harness.api import Retries
from harness.config.plan import Plan, episode_id
from harness.engines.budget import Budget
from harness.engines.mock import Mock
from harness.errors import EngineFatalError
from harness.executors._worker import News, Worker
from harness.runtime.options import Options
from tests.executors.hired import TOY, Dice, Slow, hands, hire


def asked(folder: Path) -> tuple[int, int]:
    """Calls and tokens that the journals tell of."""
    progress = storage.Progress(*storage.journals(folder))
    return progress.calls, progress.tokens


async def until_it_wants(worker: Worker) -> News:
    while not (news := await worker.finished()).wants:
        assert news.failure is None
    return news


async def answers(times: int) -> None:
    """Until so many were asked for, and all that can still be asked without a grant would have been."""
    while len(Slow.asked) < times:
        await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize("budget", [Budget(max_calls=100), Budget(max_tokens_total=1000)])
def test_a_worker_asks_as_much_as_it_is_granted(tmp_path: Path, budget: Budget) -> None:
    async def act(worker: Worker, made: Plan) -> list[tuple[int, int]]:
        await worker.add(hands(made))
        spent: list[tuple[int, int]] = []
        for granted in ((1, 11), (4, 33), (4, 33), (9, 100)):
            await until_it_wants(worker)
            await worker.grant(granted)
        spent.append((await until_it_wants(worker)).spent)
        assert await worker.spend_nothing() == spent[-1] == asked(tmp_path)
        await worker.grant((1000, 1000))
        while len(storage.Progress(*storage.journals(tmp_path)).ends) < 3:
            assert not (await worker.finished()).wants
        spent.append(cast("tuple[int, int]", await worker.spend_nothing()))
        return spent

    first, last = hire(
        tmp_path,
        Dice(),
        act,
        options=Options(max_concurrency=2, max_calls=budget.max_calls, max_tokens_total=budget.max_tokens_total),
    )
    if budget.max_calls is not None:
        assert first[0] == 9
    else:
        assert 100 <= first[1] < 100 + 2 * 11, "two are in flight"
    assert last > first


def test_calls_that_are_cut_off_count(tmp_path: Path) -> None:
    async def act(worker: Worker, made: Plan) -> None:
        Slow.asked.clear()
        Slow.let = asyncio.Event()
        await worker.add(hands(made))
        await until_it_wants(worker)
        await worker.grant((90, 0))
        await answers(2)
        assert asked(tmp_path) == (5, 0), "journaled before they are asked"

    hire(tmp_path, Slow(text="a"), act, options=Options(max_concurrency=2, max_calls=90))
    assert asked(tmp_path) == (len(Slow.asked), 0) == (2, 0)


@pytest.mark.parametrize("spent", [None, ("max_calls", 100), ("max_time", 5.0)])
@pytest.mark.parametrize("budget", [Budget(max_calls=100, max_time=5), Budget(max_tokens_total=1000)])
def test_who_waits_for_a_grant_ends_with_the_run(tmp_path: Path, spent: Any, budget: Budget) -> None:
    async def act(worker: Worker, made: Plan) -> News:
        Slow.asked.clear()
        Slow.let = asyncio.Event()
        await worker.add(hands(made))
        await until_it_wants(worker)
        await worker.grant((1, 1))
        if budget.max_calls is not None:
            await answers(1)
            await until_it_wants(worker)  # of two that are played one is answered, the other one waits
        else:
            await answers(2)
        ending = asyncio.ensure_future(worker.end("why ever", spent))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not ending.done(), "an answer that is under way is waited for"
        Slow.let.set()
        return await ending

    news = hire(
        tmp_path,
        Slow(text="a"),
        act,
        options=Options(max_concurrency=2, max_calls=budget.max_calls, max_tokens_total=budget.max_tokens_total),
    )
    assert news.failure is None and news.scores == []
    lines = [line for _, line in storage.lines(tmp_path / "journal-7.jsonl")]
    assert sum(len(line.get("calls", ())) for line in lines) == len(Slow.asked) == news.spent[0] == asked(tmp_path)[0]


def test_what_needs_nothing_new_is_played_when_the_budget_is_spent(tmp_path: Path) -> None:
    """The rest is told as not finished; nothing is asked, and the engine, which is out of order, is not started."""
    whole = tmp_path / "whole"
    harness.evaluate("toy", Dice(), project=TOY, output_path=whole)
    known = {name: moves for name, moves in moves_of(whole).items() if "/c1/" in name}
    assert len(known) == 2

    async def act(worker: Worker, made: Plan) -> tuple[set[str], set[str], News]:
        given = [(*hand[:3], known.get(episode_id(condition, *hand[1:3]), {})) for hand, condition in dealt(made)]
        await worker.add(given)
        scores: set[str] = set()
        doubted: set[str] = set()
        while len(scores) + len(doubted) < len(given):
            news = await worker.finished()
            assert news.failure is None
            scores |= {score.id for score in news.scores}
            doubted |= set(news.doubted)
        return scores, doubted, await worker.end()

    options = Options(max_concurrency=2, max_calls=9)
    finished, rest, news = hire(tmp_path, Dice(broken_start=True), act, options=options, spent=("max_calls", 9))
    assert finished == set(known) and len(rest) == 6 and news == News()
    assert set(storage.Progress(*storage.journals(tmp_path)).ends) == finished


class Patient(Mock, Retries):
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
    async def act(worker: Worker, made: Plan) -> News:
        Patient.tries, Patient.over = 0, asyncio.get_running_loop().create_future()
        await worker.add(hands(made))
        while Patient.tries < 2:
            await asyncio.sleep(0)
        return await worker.end("max_time 5 is reached", ("max_time", 5))

    news = hire(tmp_path, Patient(text="a"), act, options=Options(max_concurrency=2, max_time=5))
    assert news == News(spent=(2, 0)) and asked(tmp_path) == (2, 0)


def test_a_worker_that_cannot_count_tokens_stops_the_run(tmp_path: Path) -> None:
    async def act(worker: Worker, made: Plan) -> Any:
        await worker.add(hands(made))
        await until_it_wants(worker)
        await worker.grant((0, 1000))
        while (failure := (await worker.finished()).failure) is None:
            pass
        return failure

    options = Options(max_concurrency=2, max_tokens_total=1000)
    failure = hire(tmp_path, Mock(text="a"), act, options=options)
    assert isinstance(failure, EngineFatalError) and "does not say how many tokens" in str(failure)


def moves_of(folder: Path) -> dict[str, Any]:
    """Episode → its moves, as if it had not come to its end."""
    bare = folder.with_name(f"{folder.name}-moves.jsonl")
    lines = [raw for raw in (folder / "journal.jsonl").read_text().splitlines() if '"k":"end"' not in raw]
    bare.write_text("\n".join(lines) + "\n")
    return storage.Progress(bare).moves


def dealt(made: Plan) -> list[tuple[Any, Any]]:
    """Hands, with their conditions."""
    return [(hand, condition) for hand, (condition, _, _) in zip(hands(made), made.episodes(), strict=True)]
