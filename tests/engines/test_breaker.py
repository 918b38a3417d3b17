"""The circuit breaker around an engine."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness.api import Request
from harness.engines.breaker import Breaker, Stop
from harness.engines.mock import Mock
from harness.errors import (
    ContextLengthError,
    EngineError,
    EngineFatalError,
    RefusedError,
    RequestError,
    SetupError,
)
from tests.conftest import request


def outcomes(breaker: Breaker, count: int) -> list[str]:
    """What becomes of so many requests, one after another."""

    async def main() -> list[str]:
        came = []
        for k in range(count):
            try:
                came.append((await breaker.complete(request("?", key=k))).text)
            except EngineError as error:
                came.append(error.kind)
        return came

    return asyncio.run(main())


def failing(*numbers: int, kind: type[EngineError] = RequestError) -> tuple[Mock, list[str]]:
    """An engine that fails at the requests of these numbers."""
    asked: list[str] = []

    def answer(asking: Request) -> str:
        asked.append(asking.id)
        if len(asked) - 1 in numbers:
            raise kind("no")
        return "fine"

    return Mock(function=answer), asked


def test_too_many_failures_among_the_last_hundred_end_everything() -> None:
    stop, (engine, asked) = Stop(), failing(*range(40, 46))
    breaker = Breaker(engine, stop, max_error_rate=0.05)
    assert outcomes(breaker, 60) == ["fine"] * 40 + ["request"] * 6 + ["fatal"] * 14
    assert len(asked) == 46 and breaker.answered == 40
    assert stop.reason is not None and stop.reason.startswith("6 of the last 46 requests to mock failed, the last with")
    with pytest.raises(EngineFatalError, match="6 of the last 46"):
        stop.check()
    other, unasked = failing()
    assert outcomes(Breaker(other, stop, max_error_rate=1), 3) == ["fatal"] * 3, "one stop for all engines of a run"
    assert unasked == []


def test_old_failures_are_forgotten_and_long_conversations_are_none() -> None:
    engine, asked = failing(*range(0, 1000, 20))
    assert outcomes(Breaker(engine, Stop(), max_error_rate=0.05), 1000).count("request") == 50 and len(asked) == 1000
    engine, asked = failing(*range(1000), kind=ContextLengthError)
    breaker = Breaker(engine, Stop(), max_error_rate=0.0)
    assert outcomes(breaker, 300) == ["context_length"] * 300 and breaker.answered == 300


@pytest.mark.parametrize("rate", [0.07, 0.14, 0.28, 0.29, 0.57, 0.58])
def test_as_many_may_fail_as_were_allowed(rate: float) -> None:
    most = round(rate * 100)
    engine, _ = failing(*range(1, 1 + most))
    assert outcomes(Breaker(engine, Stop(), rate), 100) == ["fine"] + ["request"] * most + ["fine"] * (99 - most)
    engine, _ = failing(*range(1, 2 + most))
    assert outcomes(Breaker(engine, Stop(), rate), 100)[2 + most :] == ["fatal"] * (98 - most)


def test_an_engine_that_never_answered_is_given_up_early() -> None:
    stop, (engine, _) = Stop(), failing(*range(100))
    assert outcomes(Breaker(engine, stop, 0.9), 50) == ["request"] * 10 + ["fatal"] * 40
    assert str(stop.reason).startswith("10 of the last 10 requests to mock failed, the last with: no (max_error_rate")
    engine, _ = failing(*range(100))
    assert outcomes(Breaker(engine, Stop(), 1.0), 100) == ["request"] * 100
    engine, _ = failing(*range(1, 91))
    assert outcomes(Breaker(engine, Stop(), 0.9), 100).count("fatal") == 0
    engine, _ = failing(*range(90), kind=RefusedError)
    assert outcomes(Breaker(engine, Stop(), 0.9), 100).count("fatal") == 0, "it is there, and refuses"


def test_an_engine_that_is_gone_is_asked_no_more() -> None:
    engine, asked = failing(3, kind=EngineFatalError)
    assert outcomes(Breaker(engine, Stop(), max_error_rate=0.25), 9) == ["fine"] * 3 + ["fatal"] * 6
    assert len(asked) == 4


@pytest.mark.parametrize("rate", [-0.1, 1.5, float("nan"), "x", None, True])
def test_a_share_is_a_share(rate: Any) -> None:
    with pytest.raises(SetupError, match="must be from 0 to 1"):
        Breaker(Mock(), Stop(), rate)
