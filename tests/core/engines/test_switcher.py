"""Engines of which one is started at a time: who can sleep is not closed in between, and all are at the end."""

import asyncio

import pytest

from harness.api import Completion, Engine, Request
from harness.api.errors import BudgetSpentError
from harness.engines.bounded_usage import BoundedUsage
from harness.engines.gate import Gate, Shared
from harness.engines.switcher import EngineSwitcher
from harness.engines.usage import Budget, Usage
from tests.conftest import request


class Sleeper(Engine):
    """Needs the accelerator while it is awake; may keep its place elsewhere."""

    def __init__(self, name: str, sleeps: bool) -> None:
        self.name, self.sleeps, self.log, self.awake = name, sleeps, list[str](), False

    @property
    def model(self) -> str:
        return self.name

    async def start(self) -> None:
        self.awake = True
        self.log.append("start")

    async def complete(self, request: Request) -> Completion:
        assert self.awake
        await asyncio.sleep(0)
        return Completion(self.name)

    async def sleep(self) -> bool:
        if not self.sleeps:
            return False
        self.awake = False
        self.log.append("sleep")
        return True

    async def close(self) -> None:
        self.awake = False
        self.log.append("close")


def gated(*engines: Sleeper, usage: Usage | None = None) -> dict[str, Gate]:
    switcher = EngineSwitcher([engine.name for engine in engines])
    return {engine.name: Gate(engine, shared=Shared(switcher=switcher, usage=usage or Usage())) for engine in engines}


def test_an_engine_that_can_sleep_is_closed_once_at_the_end_others_every_time() -> None:
    light, heavy = Sleeper("light", sleeps=True), Sleeper("heavy", sleeps=False)
    gates = gated(light, heavy)

    async def main() -> None:
        for name in ("light", "heavy", "light", "heavy", "light", "heavy"):
            answer = await gates[name].complete(request("?"))
            assert answer.text == name
            assert [e.name for e in (light, heavy) if e.awake] == [name], "one at a time"
        for engine in gates.values():
            await engine.close()

    asyncio.run(main())
    assert light.log == ["start", "sleep"] * 3 + ["close"]
    assert heavy.log == ["start", "close"] * 3
    assert gates["light"].report()["engine_switches"] == 6


def test_a_sleeping_engine_is_closed_when_the_budget_is_spent() -> None:
    light, other = Sleeper("light", sleeps=True), Sleeper("other", sleeps=True)
    gates = gated(light, other, usage=BoundedUsage(Budget(max_calls=2)))

    async def main() -> None:
        for name in ("light", "other"):
            await gates[name].complete(request("?"))
        with pytest.raises(BudgetSpentError):
            await gates["light"].complete(request("?"))
        for engine in gates.values():
            await engine.close()

    asyncio.run(main())
    assert light.log == other.log == ["start", "sleep", "close"]
