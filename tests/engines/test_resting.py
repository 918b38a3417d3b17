"""Engines that take turns and can rest: they are not closed in between, and all of them are at the end."""

import asyncio

import pytest

from harness.api import Completion, Engine, Request
from harness.engines.budget import Budget, Budgeted, Tally
from harness.engines.turns import in_turns
from harness.errors import BudgetSpentError
from tests.conftest import request


class Sleeper(Engine):
    """Needs the accelerator while it is awake; may keep its place elsewhere."""

    def __init__(self, name: str, rests: bool) -> None:
        self.name, self.rests, self.log, self.awake = name, rests, list[str](), False

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

    async def rest(self) -> bool:
        if not self.rests:
            return False
        self.awake = False
        self.log.append("rest")
        return True

    async def close(self) -> None:
        self.awake = False
        self.log.append("close")


def test_who_can_rest_is_closed_once_at_the_end_and_who_cannot_every_time() -> None:
    light, heavy = Sleeper("light", rests=True), Sleeper("heavy", rests=False)
    taking = in_turns({"light": light, "heavy": heavy})

    async def main() -> None:
        for name in ("light", "heavy", "light", "heavy", "light", "heavy"):
            answer = await taking[name].complete(request("?"))
            assert answer.text == name
            assert [e.name for e in (light, heavy) if e.awake] == [name], "one at a time"
        for engine in taking.values():
            await engine.close()

    asyncio.run(main())
    assert light.log == ["start", "rest"] * 3 + ["close"]
    assert heavy.log == ["start", "close"] * 3
    assert taking["light"].report()["changes_of_engine"] == 6


def test_a_sleeping_engine_is_closed_when_the_budget_is_spent() -> None:
    light, other = Sleeper("light", rests=True), Sleeper("other", rests=True)
    tally = Tally(Budget(max_calls=2))
    taking = in_turns({engine.name: Budgeted(engine, tally) for engine in (light, other)})

    async def main() -> None:
        for name in ("light", "other"):
            await taking[name].complete(request("?"))
        with pytest.raises(BudgetSpentError):
            await taking["light"].complete(request("?"))
        for engine in taking.values():
            await engine.close()

    asyncio.run(main())
    assert light.log == other.log == ["start", "rest", "close"]
