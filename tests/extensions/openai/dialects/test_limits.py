"""Servers that limit the rate: the engine slows down for all its requests, and no answer is lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.extensions.openai.pace import Pace
from harness.runtime.runner import RunStoppedError
from tests.extensions.openai.dialects.play import by_seed, calm, errors, play, report
from tests.helpers.fake_openai import Body, FakeOpenAI, Fault, raw, status
from tests.helpers.skipped_time import skipping
from tests.helpers.toy import results

PATIENT = {"max_retries": 6000, "backoff": 0.0001, "max_backoff": 0.001}
"""Seconds without an answer until an engine gives up: the product of the first and the last."""
LIMITED = "Rate limit reached on requests per min (RPM): Limit 30, Used 30. Please try again in 20ms."


@pytest.mark.parametrize("repeats", [1, pytest.param(15, marks=pytest.mark.slow)])
def test_a_server_of_thirty_requests_a_window_finishes_all_episodes(tmp_path: Path, repeats: int) -> None:
    """It answers thirty requests, then refuses forty: more than a quarter of all, and one request often."""
    seen: Counter[str] = Counter()

    def faults(body: Body) -> Fault | None:
        seen["all"] += 1
        return status(429, LIMITED) if seen["all"] % 70 >= 30 else None

    with FakeOpenAI(by_seed, faults=faults) as server:
        done = play(tmp_path / "wild" / "run", server, PATIENT, repeats=repeats)
    assert len(done.scores) == 8 * repeats and errors(done) == []
    assert report(done)["rate_limited"] == len(server.bodies) - report(done)["requests"] > 30
    assert report(done)["failures"] == report(done)["retries"] == 0
    assert results(tmp_path / "wild" / "run") == calm(tmp_path / "calm" / "run", repeats=repeats)


@pytest.mark.parametrize(
    "fault",
    [
        raw('{"error": {"code": 429, "message": "z-ai/glm is temporarily rate-limited upstream."}}'),
        raw('{"choices": [{"error": {"code": 429, "message": "Provider returned error"}, "finish_reason": "error"}]}'),
        status(503, "Too many requests"),
    ],
)
def test_a_limit_behind_another_status_is_one(tmp_path: Path, fault: Fault) -> None:
    """OpenRouter: github.com/open-webui/computer/issues/293."""
    count: Counter[str] = Counter()

    def faults(body: Body) -> Fault | None:
        count["all"] += 1
        return fault if count["all"] % 3 else None

    with FakeOpenAI(by_seed, faults=faults) as server:
        done = play(tmp_path / "run", server, PATIENT)
    assert report(done)["rate_limited"] > 50 and errors(done) == [] and report(done)["failures"] == 0


def test_a_server_that_refuses_everything_stops_the_run_which_can_be_resumed(tmp_path: Path) -> None:
    count: Counter[str] = Counter()

    def faults(body: Body) -> Fault | None:
        count["all"] += 1
        return status(429, LIMITED) if count["all"] > 20 else None

    with FakeOpenAI(by_seed, faults=faults) as server:
        with pytest.raises(RunStoppedError, match="limits the rate and answered none of the last"):
            play(tmp_path / "wild" / "run", server, {"max_retries": 2})
        count["all"] = -10_000
        done = play(tmp_path / "wild" / "run", server, {"max_retries": 2})
    assert errors(done) == []
    assert results(tmp_path / "wild" / "run") == calm(tmp_path / "calm" / "run")


def test_a_request_that_is_larger_than_the_limit_is_refused_at_once(tmp_path: Path) -> None:
    large = status(429, "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 61000.")
    with FakeOpenAI(by_seed, faults=lambda body: large if len(body["messages"]) > 4 else None) as server:
        done = play(tmp_path / "run", server)
    assert {turn["error_kind"] for turn in done.turns()} == {None, "refused"}


class Minute:
    """A server that takes so many requests in each minute, from when it started. Each takes a second."""

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self.most, self.clock = most, clock
        self.taken: Counter[int] = Counter()
        self.refused = 0

    async def ask(self) -> float | None:
        """None if it answers, else the seconds until it does."""
        minute = int(self.clock() // 60)
        if self.taken[minute] >= self.most:
            self.refused += 1
            return 60 * (minute + 1) - self.clock()
        self.taken[minute] += 1
        await asyncio.sleep(1)
        return None


@pytest.mark.parametrize(("hints", "most_refused", "minutes"), [(True, 200, 26), (False, 200, 40)])
def test_the_pace_of_all_seats_comes_near_the_limit(hints: bool, most_refused: int, minutes: float) -> None:
    """720 requests, 16 at once, 30 a minute: 24 minutes at best."""

    async def main(clock: Callable[[], float]) -> tuple[float, int]:
        server, pace = Minute(30, clock), Pace()
        ended: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()

        async def seat(requests: int) -> None:
            for _ in range(requests):
                while True:
                    sent = await pace.turn(ended, 60)
                    if (wait := await server.ask()) is None:
                        pace.answered()
                        break
                    pace.refused(sent, wait if hints else min(60, 0.5 * 2**pace.refusals))

        await asyncio.gather(*(seat(45) for _ in range(16)))
        return clock() / 60, server.refused

    needed, refused = skipping(main)
    assert refused <= most_refused
    assert 23 <= needed <= minutes
