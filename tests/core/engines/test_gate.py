"""The gate before an engine: so many at once, and none once the run is to end."""

from __future__ import annotations

import asyncio
import traceback
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Completion, Request
from harness.api.errors import (
    ContextLengthError,
    EngineError,
    EngineFatalError,
    RefusedError,
    RequestError,
    SetupError,
)
from harness.engines.gate import Gate, Shared, Stop
from harness.engines.mock import Mock
from tests.conftest import request


def outcomes(gate: Gate, count: int) -> list[str]:
    """What becomes of so many requests, one after another."""

    async def main() -> list[str]:
        results = []
        for k in range(count):
            try:
                results.append((await gate.complete(request("?", key=k))).text)
            except EngineError as error:
                results.append(error.kind)
        return results

    return asyncio.run(main())


def failing(*numbers: int, kind: type[EngineError] = RequestError) -> tuple[Mock, list[str]]:
    """An engine that fails at the requests of these numbers."""
    requests: list[str] = []

    def answer(asking: Request) -> str:
        requests.append(asking.id)
        if len(requests) - 1 in numbers:
            raise kind("no")
        return "fine"

    return Mock(function=answer), requests


def test_too_many_failures_among_the_last_hundred_end_everything() -> None:
    stop, (engine, requests) = Stop(), failing(*range(40, 46))
    gate = Gate(engine, max_error_rate=0.05, shared=Shared(stop=stop))
    assert outcomes(gate, 60) == ["fine"] * 40 + ["request"] * 6 + ["fatal"] * 14
    assert len(requests) == 46 and gate.answered == 40
    assert stop.reason is not None and stop.reason.startswith("6 of the last 46 requests to mock failed, the last with")
    with pytest.raises(EngineFatalError, match="6 of the last 46"):
        stop.check()
    other, unasked = failing()
    assert outcomes(Gate(other, max_error_rate=1, shared=Shared(stop=stop)), 3) == ["fatal"] * 3, (
        "one stop for all engines of a run"
    )
    assert unasked == []


def test_old_failures_are_forgotten_and_long_conversations_are_none() -> None:
    engine, requests = failing(*range(0, 1000, 20))
    assert outcomes(Gate(engine, max_error_rate=0.05), 1000).count("request") == 50 and len(requests) == 1000
    engine, requests = failing(*range(1, 1000), kind=ContextLengthError)
    gate = Gate(engine, max_error_rate=0.0)
    assert outcomes(gate, 300) == ["fine"] + ["context_length"] * 299 and gate.answered == 1


@pytest.mark.parametrize("rate", [0.07, 0.14, 0.28, 0.29, 0.57, 0.58])
def test_as_many_may_fail_as_were_allowed(rate: float) -> None:
    most = round(rate * 100)
    engine, _ = failing(*range(1, 1 + most))
    assert outcomes(Gate(engine, max_error_rate=rate), 100) == ["fine"] + ["request"] * most + ["fine"] * (99 - most)
    engine, _ = failing(*range(1, 2 + most))
    assert outcomes(Gate(engine, max_error_rate=rate), 100)[2 + most :] == ["fatal"] * (98 - most)


@pytest.mark.parametrize("kind", [RequestError, RefusedError, ContextLengthError])
def test_an_engine_that_never_answered_is_given_up_early(kind: type[EngineError]) -> None:
    stop, (engine, _) = Stop(), failing(*range(100), kind=kind)
    assert outcomes(Gate(engine, max_error_rate=0.9, shared=Shared(stop=stop)), 50) == [kind.kind] * 10 + ["fatal"] * 40
    assert str(stop.reason).startswith("the first 10 requests to mock all failed, the last with: no (max_error_rate 1")
    engine, _ = failing(*range(100), kind=kind)
    assert outcomes(Gate(engine, max_error_rate=1.0), 100) == [kind.kind] * 100
    for answers in (0, 9):
        engine, _ = failing(*(set(range(91)) - {answers}), kind=kind)
        assert outcomes(Gate(engine, max_error_rate=0.9), 100).count("fatal") == 0
    engine, _ = failing(*range(90), kind=kind)
    gate = Gate(engine, max_error_rate=0.9, is_known=lambda: True)
    assert outcomes(gate, 100).count("fatal") == 0, "it answered before the run was resumed"


def test_an_engine_that_is_gone_is_asked_no_more() -> None:
    engine, requests = failing(3, kind=EngineFatalError)
    assert outcomes(Gate(engine, max_error_rate=0.25), 9) == ["fine"] * 3 + ["fatal"] * 6
    assert len(requests) == 4


@pytest.mark.parametrize("rate", [-0.1, 1.5, float("nan"), "x", None, True])
def test_a_share_is_a_share(rate: Any) -> None:
    with pytest.raises(SetupError, match="must be from 0 to 1"):
        Gate(Mock(), max_error_rate=rate)


# ---------------------------------------------------------------------------------- how many at once


def test_the_gate_lets_so_many_through_and_all_in_the_end() -> None:
    flying = peak = 0

    async def answer(asked: Request) -> str:
        nonlocal flying, peak
        flying += 1
        peak = max(peak, flying)
        for _ in range(3):
            await asyncio.sleep(0)
        flying -= 1
        return asked.id

    async def main() -> list[Completion]:
        engine = Gate(Mock(function=answer), max_concurrency=3)
        return await asyncio.gather(*(engine.complete(request("?", key=k)) for k in range(20)))

    assert [a.text for a in asyncio.run(main())] == [f"test/{k}/0/0" for k in range(20)]
    assert peak == 3


def test_a_failure_frees_its_slot() -> None:
    def answer(asked: Request) -> str:
        if asked.id == "test/0/0/0":
            raise RequestError("no")
        return "fine"

    async def main() -> list[Any]:
        engine = Gate(Mock(function=answer), max_concurrency=1)
        return await asyncio.gather(*(engine.complete(request("?", key=k)) for k in range(3)), return_exceptions=True)

    failed, *others = asyncio.run(main())
    assert isinstance(failed, RequestError) and [o.text for o in others] == ["fine", "fine"]


@pytest.mark.parametrize("limit", [0, -1, "a", 1.5, None, True])
def test_a_limit_below_one_or_of_no_number_is_refused(limit: Any) -> None:
    with pytest.raises(SetupError, match=f"a whole number, at least 1, not {limit!r}"):
        Gate(Mock(), max_concurrency=limit)


# ---------------------------------------------------------------------------------- how many calls deep


@pytest.mark.parametrize("options", [{}, {"log_requests": True, "max_calls": 9}])
def test_a_gate_is_all_that_stands_between_player_and_engine(tmp_path: Path, options: dict[str, Any]) -> None:
    assert calls_between(tmp_path, **options) == ["gate.py"]


def test_caches_stand_before_the_gate(tmp_path: Path) -> None:
    caches = {"use_cache": tmp_path / "c", "overrides": ["dedupe_calls=true"]}
    assert calls_between(tmp_path, **caches) == ["cache.py", "cache.py", "gate.py"]


def calls_between(folder: Path, **options: Any) -> list[str]:
    """The files of the calls between a player and its engine."""

    def fail(asked: Request) -> str:
        raise SetupError("here")

    with pytest.raises(SetupError, match="here") as caught:
        harness.evaluate("agentsnet_quick", Mock(function=fail), limit=1, output_path=folder / "r", **options)
    files = [Path(frame.filename).name for frame in traceback.extract_tb(caught.value.__traceback__)]
    return files[files.index("players.py") + 1 : files.index("mock.py")]
