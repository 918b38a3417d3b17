"""Model calls that programs make while they play: counted, bounded, recorded, and answered again after a stop."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import field
from pathlib import Path
from typing import Any

import harness
from harness import storage
from harness.api import CallsModels, Completion, Engine, InnerDoor, InnerRequest, Request, TurnId, plugin
from harness.config import resolve, spec
from harness.engines.mock import Mock
from harness.evaluation.stages import execute
from harness.runtime.options import Options
from harness.storage.inner_calls import InnerCallIndex
from tests.helpers.toy import TOY

Ask = Callable[[str], Awaitable[Completion]]
Program = Callable[[Ask, Request], Awaitable[str]]


@plugin
class Programs(Engine, CallsModels):
    """Plays with a coroutine that may ask its model."""

    program: Program = field(repr=False)
    inner: Engine
    limits: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def model(self) -> str:
        return "program"

    @property
    def inner_engine(self) -> Engine:
        return self.inner

    @property
    def inner_limits(self) -> dict[str, dict[str, float]]:  # type: ignore[override]
        return self.limits

    def connect(self, calls: InnerDoor) -> None:
        self.door = calls

    async def complete(self, request: Request) -> Completion:
        turn = TurnId.of(request.id)
        seat = self.door.seat(turn.episode, turn.agent)

        async def ask(text: str) -> Completion:
            return await seat.complete(InnerRequest("chat", "any", [{"role": "user", "content": text}]))

        return Completion(await self.program(ask, request), input_tokens=999, cost=7.0)


def play(
    folder: Path, program: Program, model: Callable[[Request], Any], limits: Any = None, **options: Any
) -> harness.Run:
    data = {"extends": "toy", "matrix": {"agents": [2]}, "tables": []}
    engine = Programs(program=program, inner=Mock(model="small", function=model), limits=limits or {})
    plan = resolve.plan(spec.parse(data, TOY), TOY, engine)
    return execute(plan, Options(output_path=folder, **options))


def lines(folder: Path, *kinds: str) -> list[Any]:
    return [line for _, line in storage.lines(folder / storage.JOURNAL) if line["k"] in kinds]


def said(request: Request) -> Completion:
    return Completion(f"answer to {request.thread.messages[-1]['content']}", input_tokens=10, output_tokens=2)


async def twice(ask: Ask, request: Request) -> str:
    first = await ask("one")
    await asyncio.gather(*(ask("two") for _ in range(2)), ask(first.text))
    return "a"


def test_calls_are_counted_apart_and_recorded(tmp_path: Path) -> None:
    run = play(tmp_path / "run", twice, said)
    moves = lines(tmp_path / "run", "move")
    assert moves and all(
        move["inner"] | {"seconds": 0} == {"calls": 4, "input_tokens": 40, "output_tokens": 8, "seconds": 0}
        for move in moves
    )
    assert all(move["calls"][0]["input_tokens"] == 40 and "cost" not in move["calls"][0] for move in moves)
    index = InnerCallIndex([tmp_path / "run" / storage.JOURNAL])
    for episode in index.episodes():
        calls = index.of(episode)
        assert {call.model for call in calls} == {"model.inner"} and {call.start for call in calls} == {0}
        texts = Counter(call.request.messages[-1]["content"] for call in calls)
        assert texts == {text: len(calls) // 4 * n for text, n in (("one", 1), ("two", 2), ("answer to one", 1))}
        assert len({call.seed for call in calls}) == len(calls)
    assert run.meta["engine_args"]["model.inner"]["model"] == "small"
