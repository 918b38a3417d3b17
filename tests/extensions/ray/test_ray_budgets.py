"""Budgets with Ray's workers: what comes out is what one process gives, and what may be asked is never exceeded."""

import contextlib
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness import storage
from harness.api import Request
from harness.engines.mock import Mock
from harness.runtime.runner import BudgetReachedError, RunStoppedError
from tests.extensions.ray.clusters import RAY, killing, recorded, run
from tests.extensions.ray.workers import Dice
from tests.helpers.fake_openai import FakeOpenAI, status
from tests.helpers.journals import as_killed
from tests.helpers.toy import results

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("cluster")]


def asked(folder: Path) -> tuple[int, int]:
    """Calls and tokens that the journals tell of."""
    progress = storage.JournalState(*storage.journals(folder))
    return progress.calls, progress.tokens


def meta(folder: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return data


@pytest.fixture
def whole(tmp_path: Path) -> tuple[Path, int]:
    """The run without a budget, in one process; and the calls it takes."""
    engine = Dice()
    run(tmp_path / "whole" / "r", engine, "local")
    return tmp_path / "whole" / "r", len(engine.asked)


def test_calls_are_never_exceeded_and_any_executor_goes_on(tmp_path: Path, whole: tuple[Path, int]) -> None:
    folder, log = tmp_path / "many" / "r", tmp_path / "log"
    for most, executor in ((1, RAY), (40, RAY), (70, "local"), (71, {**RAY, "workers": 4}), (whole[1] - 1, RAY)):
        engine = Dice(latency=0.005, log=str(log))
        with pytest.raises(BudgetReachedError, match=f"max_calls {most} is reached: .* of 24 episodes are") as caught:
            run(folder, engine, executor, max_calls=most)
        assert len(log.read_text().split()) == most == asked(folder)[0] == caught.value.stopped["asked"]["calls"]
        assert caught.value.stopped["asked"]["tokens"] == asked(folder)[1]
        assert meta(folder)["status"] == "stopped" and meta(folder)["stopped"] == caught.value.stopped
        assert caught.value.stopped["episodes"] == len(storage.JournalState(*storage.journals(folder)).ends)
        assert not (folder / "scores.jsonl").exists() and not list(folder.glob(".lock-*"))
        if executor != "local":
            assert all(name.startswith("worker ") for name in meta(folder)["engines"]["model"])
    run(folder, Dice(log=str(log)), RAY, max_calls=whole[1])
    assert results(folder) == results(whole[0]) and recorded(folder) == recorded(whole[0])
    assert set(Counter(log.read_text().split()).values()) == {1}, "nothing twice"


def test_a_run_without_rest_starts_no_engine(tmp_path: Path) -> None:
    with pytest.raises(BudgetReachedError):
        run(tmp_path / "r", Dice(), max_calls=9)
    before = meta(tmp_path / "r")
    with pytest.raises(BudgetReachedError):
        run(tmp_path / "r", Dice(broken_start=True), max_calls=9)
    assert meta(tmp_path / "r")["stopped"] == before["stopped"] and meta(tmp_path / "r")["status"] == "stopped"


def test_what_is_recorded_or_cached_is_played_with_a_budget_that_is_spent(
    tmp_path: Path, whole: tuple[Path, int]
) -> None:
    folder = tmp_path / "many" / "r"
    run(folder, Dice(), max_calls=whole[1], use_cache=tmp_path / "cache")
    for journal in storage.journals(folder):  # as kill -9 may leave it
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join(line for line in lines if b'"k":"end"' not in line))
    as_killed(folder)
    for name in results(folder):
        (folder / name).unlink()
    run(folder, Dice(broken_start=True), max_calls=whole[1])
    assert results(folder) == results(whole[0])
    with pytest.raises(BudgetReachedError):
        run(tmp_path / "b" / "r", Dice(), max_calls=1, max_concurrency=1)
    log = tmp_path / "log"
    try:
        run(tmp_path / "b" / "r", Dice(log=str(log)), max_calls=1, use_cache=tmp_path / "cache")
    except BudgetReachedError as spent:  # requests that failed are in no cache
        failed = spent.stopped["of"] - spent.stopped["episodes"]
        assert 0 < failed == 24 - len(storage.JournalState(*storage.journals(tmp_path / "b" / "r")).ends)
    assert not log.exists(), "nothing new is asked"


def test_a_worker_that_is_lost_takes_no_more_of_the_budget_than_it_wrote_down(
    tmp_path: Path, whole: tuple[Path, int]
) -> None:
    folder, log = tmp_path / "many" / "r", tmp_path / "log"
    engine = Dice(latency=0.03, log=str(log))
    most = whole[1] - 30
    with pytest.raises(BudgetReachedError) as caught:
        run(folder, engine, max_calls=most, on_score=killing(folder, lambda count: [0] if count >= 4 else []))
    assert len(log.read_text().split()) <= most == asked(folder)[0] == caught.value.stopped["asked"]["calls"]
    assert len(meta(folder)["executor"]["lost"]) == 1
    run(folder, Dice())
    assert results(folder) == results(whole[0])


def test_tokens_in_flight_when_the_sum_is_reached_come_on_top(tmp_path: Path, whole: tuple[Path, int]) -> None:
    folder = tmp_path / "many" / "r"
    for most in (100, 900):
        with pytest.raises(BudgetReachedError, match=f"max_tokens_total {most} is reached") as caught:
            run(folder, Dice(latency=0.005), max_tokens_total=most)
        used = caught.value.stopped["asked"]["tokens"]
        assert most <= used < most + 11 * 4 * 3 and used == asked(folder)[1]
    run(folder, Dice(), "local")
    assert results(folder) == results(whole[0])


def test_tokens_that_no_engine_counts_cannot_be_kept_to(tmp_path: Path) -> None:
    with pytest.raises(RunStoppedError, match="mock does not say how many tokens its calls take: max_tokens_total"):
        run(tmp_path / "r", Mock(text="a"), max_tokens_total=100)
    run(tmp_path / "r", Mock(text="a"), max_calls=1000)


def test_time_that_is_over_ends_tries_that_wait(tmp_path: Path) -> None:
    slow = status(429, "slow down", headers={"Retry-After": "3600"})
    with FakeOpenAI(faults=lambda body: slow) as server:
        fields = {"model": "fake", "base_url": server.url, "max_backoff": 3600.0}
        with pytest.raises(BudgetReachedError, match="max_time 4 is reached: 0 of 24"):
            run(tmp_path / "r", "openai", model_args=fields, max_time=4)
        assert len(server.bodies) <= 4 * 3
    with pytest.raises(BudgetReachedError, match=r"max_time 1e-09 is reached(.|\n)*for as long again"):
        run(tmp_path / "b", Dice(broken_start=True), max_time=1e-9)
    with pytest.raises(BudgetReachedError):
        run(tmp_path / "policies", max_time=1e-9)


def test_requests_that_wait_for_a_share_end_with_an_engine_gone_elsewhere(tmp_path: Path) -> None:
    """The whole budget is in flight in workers that are never answered but in one, which then is gone."""
    log, first = tmp_path / "log", tmp_path / "first"

    async def answer(request: Request) -> str:
        import asyncio

        from harness.api.errors import EngineFatalError

        with log.open("a") as file:
            file.write("x")
        try:
            first.open("x").close()
        except FileExistsError:
            while not (tmp_path / "gone").exists():
                await asyncio.sleep(0.01)
            return "a"
        while log.stat().st_size < 6:
            await asyncio.sleep(0.01)
        (tmp_path / "gone").touch()
        raise EngineFatalError("this one is gone")

    with pytest.raises(RunStoppedError, match="this one is gone"):
        run(tmp_path / "r", Mock(function=answer), max_calls=6)
    assert asked(tmp_path / "r")[0] == log.stat().st_size == 6


def test_refusals_are_not_asked_again_if_another_worker_was_answered(tmp_path: Path) -> None:
    """Of three workers one has an answer, and the budget ends the run before the others have any."""
    log, first = tmp_path / "log", tmp_path / "first"

    async def answer(request: Request) -> str:
        import asyncio

        from harness.api.errors import RefusedError

        with log.open("a") as file:
            file.write(request.id + "\n")
        with contextlib.suppress(FileExistsError):
            first.open("x").write(str(os.getpid()))
        while len(log.read_text().split()) < 3:  # each worker asks something
            await asyncio.sleep(0.01)
        if not (tmp_path / "on").exists() and first.read_text() != str(os.getpid()):
            raise RefusedError("not these words")
        return "a"

    with pytest.raises(BudgetReachedError):
        run(tmp_path / "r", Mock(function=answer), max_calls=6, max_error_rate=0.9)
    (tmp_path / "on").touch()
    run(tmp_path / "r", Mock(function=answer), "local", max_error_rate=0.9)
    assert set(Counter(log.read_text().split()).values()) == {1}, "nothing twice"


def test_policies_cost_nothing(tmp_path: Path) -> None:
    run(tmp_path / "one" / "r", executor="local")
    run(tmp_path / "many" / "r", max_calls=1, max_tokens_total=1)
    assert results(tmp_path / "many" / "r") == results(tmp_path / "one" / "r")


def test_workers_that_read_nothing_end_the_run_and_it_resumes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    mute = Mock(text="gibberish", latency=0.01)
    run(tmp_path / "whole" / "r", mute, "local")
    caplog.clear()
    with pytest.raises(RunStoppedError, match=r"0 % of the first .* turns were parsed, fewer than 20 %"):
        run(tmp_path / "r", mute, stop_unless={"parsed": 0.2})
    said = [line for line in caplog.messages if "turns were parsed" in line]
    assert len(said) == 1 and meta(tmp_path / "r")["status"] == "stopped"
    run(tmp_path / "r", mute)
    assert results(tmp_path / "r") == results(tmp_path / "whole" / "r")
