"""Requests, tokens and money that a run may use: `--rpm`, `--tpm`, `--max_cost`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.api import Completion, Request
from harness.api.errors import SetupError
from harness.engines.gate import Gate
from harness.engines.mock import Mock
from harness.engines.rate import Rate
from harness.runtime.runner import BudgetReachedError, RunStoppedError
from tests.conftest import request
from tests.helpers.collector import Collector
from tests.helpers.skipped_time import skipping
from tests.helpers.toy import results, run

PRICES = ("prices={mock: {input: 100.0, output: 1000.0}}",)


def billed(asked: Request) -> Completion:
    """An answer for a hundredth of a USD, at these prices."""
    return Completion("ab"[asked.seed % 2], input_tokens=90, output_tokens=1)


def times(rate: Rate, requests: int, tokens: int = 0) -> list[float]:
    """When each of so many requests goes that are sent at once to an engine that takes a second."""

    async def main(clock: Callable[[], float]) -> list[float]:
        sent: list[float] = []

        async def answer(asked: Request) -> Completion:
            sent.append(clock())
            await asyncio.sleep(1)
            return Completion("a", input_tokens=tokens, output_tokens=0)

        gate = Gate(Mock(function=answer))
        gate.rate = rate
        await gate.start()
        await asyncio.gather(*(gate.complete(request("?")) for _ in range(requests)))
        return sent

    return skipping(main)


def most_in_a_minute(when: list[float]) -> int:
    return max(sum(start <= one < start + 60 for one in when) for start in when)


def test_no_minute_has_more_requests_than_it_may() -> None:
    when = times(Rate(rpm=30), 120)
    assert most_in_a_minute(when) == 30
    assert when[-1] == pytest.approx(238)


def test_no_minute_has_many_more_tokens_than_it_may() -> None:
    when = times(Rate(rpm=600, tpm=1000), 50, tokens=100)
    assert 10 <= most_in_a_minute(when) <= 20  # those in flight before the first answer are not known
    assert 200 < when[-1] < 320


def test_without_bounds_all_go_at_once() -> None:
    assert times(Rate(), 50) == [0.0] * 50


def test_what_waits_for_its_turn_ends_with_the_run() -> None:
    async def main(clock: Callable[[], float]) -> float:
        gate = Gate(Mock(text="a"))
        gate.rate = Rate(rpm=1)
        await gate.start()
        waiting = [asyncio.ensure_future(gate.complete(request("?"))) for _ in range(5)]
        await asyncio.sleep(1)
        gate.stop.end("enough")
        await asyncio.gather(*waiting, return_exceptions=True)
        return clock()

    assert skipping(main) < 2


@pytest.mark.parametrize("name", ["rpm", "tpm"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "30"])
def test_a_bound_is_a_whole_number(tmp_path: Path, name: str, value: Any) -> None:
    with pytest.raises(SetupError, match=f"{name} must be a whole number, at least 1"):
        run(tmp_path / "r", Mock(text="a"), **{name: value})


def test_a_run_ends_when_its_money_is_spent_and_goes_on_with_more(tmp_path: Path) -> None:
    engine = Mock(function=billed)
    with pytest.raises(BudgetReachedError, match=r"max_cost 0\.2 is reached") as caught:
        run(tmp_path / "r", engine, PRICES, max_cost=0.2, max_concurrency=1)
    assert caught.value.stopped["asked"]["calls"] == 20
    with pytest.raises(BudgetReachedError, match=r"max_cost 0\.3 is reached") as caught:
        run(tmp_path / "r", engine, PRICES, max_cost=0.3, max_concurrency=1)
    assert caught.value.stopped["asked"]["calls"] == 30, "what was spent before counts"
    run(tmp_path / "r", engine, PRICES)
    run(tmp_path / "calm" / "r", engine, PRICES)
    assert results(tmp_path / "r")["scores.jsonl"] == results(tmp_path / "calm" / "r")["scores.jsonl"]


def test_prices_stand_in_the_users_own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CONFIG_DIR", str(tmp_path / "config"))
    engine = Mock(function=billed)
    with pytest.raises(RunStoppedError, match="max_cost cannot be kept: mock has no price"):
        run(tmp_path / "r", engine, max_cost=0.2)
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "prices.yaml").write_text("mock: {input: 100, output: 1000}\n")
    with pytest.raises(BudgetReachedError, match=r"max_cost 0\.2 is reached"):
        run(tmp_path / "r", engine, max_cost=0.2)
    (tmp_path / "config" / "prices.yaml").write_text("mock: 3\n")
    with pytest.raises(SetupError, match="the price of mock must be"):
        run(tmp_path / "r", engine, max_cost=0.2)


def test_replies_in_batches_cost_the_share_that_the_configuration_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waves of twenty replies, of half a cent each: the budget ends the run after the first."""
    monkeypatch.setenv("HARNESS_CONFIG_DIR", str(tmp_path / "config"))
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "prices.yaml").write_text("mock: {input: 100, output: 1000, batch: 0.5}\n")
    engine = Collector(billed)
    done = run(tmp_path / "whole", engine, max_cost=0.31)
    assert len(done.scores) == 8 and engine.sizes() == [20, 20, 20]
    with pytest.raises(BudgetReachedError, match=r"max_cost 0\.1 is reached"):
        run(tmp_path / "cut", engine, max_cost=0.1)
    assert engine.sizes()[3:] == [20]
