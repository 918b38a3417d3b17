"""Identical calls of different conditions are asked once, and engines that do not fit together take turns."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import pytest

import harness
from harness.api import Completion, Engine, Request, Thread
from harness.api.errors import EngineFatalError, RequestError, SetupError
from harness.config import project, resolve, spec
from harness.engines.cache import Cache
from harness.engines.gate import Gate, Shared
from harness.engines.mock import Mock
from harness.engines.switcher import EngineSwitcher
from harness.evaluation.stages import execute
from harness.runtime.options import Options
from tests.core.engines.test_budgets import SPEC

BUILTIN = project.builtin()


class Counted:
    """Answers by the call's seed, so that a shared answer is seen to be the same one; counts what it is asked."""

    def __init__(self) -> None:
        self.asked: Counter[tuple[str, int]] = Counter()
        self.dies_at: int | None = None

    def __call__(self, request: Request) -> Completion:
        if sum(self.asked.values()) == self.dies_at:
            self.dies_at = None
            raise EngineFatalError("gone")
        self.asked[request.thread.messages[-1]["content"], request.seed] += 1
        return Completion(f"The answer is {request.seed % 7}", input_tokens=10, output_tokens=5)


def answers(run: Any) -> dict[str, list[Any]]:
    """Episode → what its agents said."""
    from harness import storage

    mapping: dict[str, list[Any]] = {}
    for _, line in storage.lines(run.folder / "journal.jsonl"):
        if line["k"] == "move":
            mapping.setdefault(line["e"], []).append((line["s"], line["a"]["answer"]))
    return {name: sorted(text) for name, text in mapping.items()}


@pytest.mark.parametrize("share", [True, False])
def test_equal_calls_are_asked_once_and_billed_to_every_agent(tmp_path: Path, share: bool) -> None:
    model = Counted()
    run = harness.evaluate({**SPEC, "dedupe_calls": share}, Mock(function=model), output_path=tmp_path / "run")
    assert sum(model.asked.values()) == (15 if share else 45)
    assert {score.numbers["tokens"] for score in run.scores} == {45}, "three calls of 15 tokens, as if alone"
    text = answers(run)
    by_case: dict[str, set[str]] = {}
    for episode, moves in text.items():
        by_case.setdefault(episode.split("/")[1], set()).add(str(moves))
    assert {len(versions) for versions in by_case.values()} == ({1} if share else {3})
    if share:
        assert run.meta["engines"]["model"]["calls_shared"] == 30 and run.meta["engines"]["model"]["calls_asked"] == 15


def test_agents_and_repeats_keep_answers_of_their_own(tmp_path: Path) -> None:
    model = Counted()
    one = {**SPEC, "matrix": {"how": SPEC["matrix"]["how"][:1]}, "dedupe_calls": True, "repeats": 2}
    harness.evaluate(one, Mock(function=model), output_path=tmp_path / "run")
    assert sum(model.asked.values()) == 30 and set(model.asked.values()) == {1}


def test_a_run_that_was_cut_shares_with_what_it_had_asked(tmp_path: Path) -> None:
    whole, model = Counted(), Counted()
    data = {**SPEC, "dedupe_calls": True}
    first = harness.evaluate(data, Mock(function=whole), output_path=tmp_path / "whole")
    model.dies_at = 7
    with pytest.raises(harness.api.errors.UserError, match="the run stopped"):
        harness.evaluate(data, Mock(function=model), output_path=tmp_path / "cut", max_concurrency=2)
    second = harness.evaluate(data, Mock(function=model), output_path=tmp_path / "cut")
    assert sum(model.asked.values()) == 15 and set(model.asked.values()) == {1}, "nothing twice"
    assert answers(second) == answers(first)


def test_who_waits_for_a_shared_call_gets_its_error_too(tmp_path: Path) -> None:
    class Slow(Engine):
        model = "slow"
        count = 0

        async def complete(self, request: Request) -> Completion:
            self.count += 1
            await asyncio.sleep(0)
            if self.count == 1:
                raise RequestError("no")
            return Completion("yes")

    async def play() -> list[Any]:
        engine = Cache(Slow(), tmp_path / "shared.sqlite", share=True)
        await engine.start()
        requests = []
        for name in "ab":
            thread = Thread()
            thread.add("user", "?")
            requests.append(Request(name, thread, {}, 1))
        both = await asyncio.gather(*map(engine.complete, requests), return_exceptions=True)
        later = await engine.complete(requests[0])
        await engine.close()
        return [*both, later.text]

    result = asyncio.run(play())
    assert [type(one) for one in result[:2]] == [RequestError, RequestError] and result[2] == "yes"


def test_an_engines_bug_fails_episodes_and_not_the_run(tmp_path: Path) -> None:
    def breaks(request: Request) -> Completion:
        raise ValueError("a bug")

    run = harness.evaluate({**SPEC, "dedupe_calls": True}, Mock(function=breaks), output_path=tmp_path / "run")
    assert len(run.failed) == len(run.scores) == 15 and "a bug" in str(run.failed[0].error)


def test_who_waits_for_a_call_that_is_cancelled_asks_again(tmp_path: Path) -> None:
    class Slow(Engine):
        model = "slow"
        count = 0

        async def complete(self, request: Request) -> Completion:
            self.count += 1
            if self.count == 1:
                await asyncio.Event().wait()
            return Completion("yes")

    async def play() -> str:
        engine = Cache(Slow(), tmp_path / "shared.sqlite", share=True)
        await engine.start()
        thread = Thread()
        thread.add("user", "?")
        first = asyncio.create_task(engine.complete(Request("a", thread, {}, 1)))
        await asyncio.sleep(0)
        second = asyncio.create_task(engine.complete(Request("b", thread, {}, 1)))
        await asyncio.sleep(0)
        first.cancel()
        answer = await second
        await engine.close()
        return answer.text

    assert asyncio.run(play()) == "yes"


# --------------------------------------------------------------------------------------- in turns


class Big(Engine):
    """Fits alone only."""

    started: ClassVar[list[str]] = []

    def __init__(self, name: str, fails: bool = False) -> None:
        self.name, self.fails = name, fails
        self.log: list[Any] = []

    @property
    def model(self) -> str:
        return self.name

    async def start(self) -> None:
        if self.fails:
            raise SetupError("too large")
        assert not Big.started, f"{Big.started} is still there"
        Big.started.append(self.name)
        self.log.append("start")

    async def complete(self, request: Request) -> Completion:
        assert Big.started == [self.name]
        await asyncio.sleep(0)
        assert Big.started == [self.name]
        return Completion(f"The answer is {len(self.name)}", input_tokens=1, output_tokens=1)

    async def close(self) -> None:
        if self.name in Big.started:
            Big.started.remove(self.name)
            self.log.append("close")


def plan_with(*engines: Big) -> Any:
    """Three agents, each with one of the engines."""
    data = {
        **SPEC,
        "matrix": {"how": SPEC["matrix"]["how"][1:2]},
        "models": {engine.name: {"use": "mock"} for engine in engines[1:]},
        "agents": {
            "default": "model",
            **{e.name: {"model": e.name, "agents": [f"Agent-{i}"]} for i, e in enumerate(engines[1:], 1)},
        },
    }
    from dataclasses import replace

    plan = resolve.plan(spec.parse(data, BUILTIN), BUILTIN, engines[0])
    return replace(plan, engines={"model": engines[0], **{engine.name: engine for engine in engines[1:]}})


def test_one_engine_at_a_time_with_few_changes(tmp_path: Path) -> None:
    engines = Big("a"), Big("bb"), Big("ccc")
    run = execute(plan_with(*engines), Options(output_path=tmp_path / "run", sequential_engines=True))
    assert not run.failed and len(run.scores) == 5 and Big.started == []
    assert {str(moves) for moves in answers(run).values()} == {"[('Agent-0', 1), ('Agent-1', 2), ('Agent-2', 3)]"}
    assert [engine.log for engine in engines] == [["start", "close"]] * 3, "all episodes are open at once"
    assert run.meta["engines"]["model"] == {"engine_switches": 3}


def test_many_episodes_and_little_room(tmp_path: Path) -> None:
    engines = Big("a"), Big("bb"), Big("ccc")
    run = execute(
        plan_with(*engines), Options(output_path=tmp_path / "run", sequential_engines=True, max_concurrency=1)
    )
    assert not run.failed and Big.started == []
    assert [engine.log.count("start") for engine in engines] == [5, 3, 3], "who is there goes on first"


def test_an_engine_that_cannot_start_stops_the_run(tmp_path: Path) -> None:
    engines = Big("a"), Big("bb", fails=True), Big("ccc")
    with pytest.raises(harness.api.errors.UserError, match="bb cannot be started: too large"):
        execute(plan_with(*engines), Options(output_path=tmp_path / "run", sequential_engines=True))
    assert Big.started == []
    again = Big("a"), Big("bb"), Big("ccc")
    assert not execute(plan_with(*again), Options(output_path=tmp_path / "run", sequential_engines=True)).failed


@pytest.mark.parametrize("where", ["start", "close"])
def test_an_engine_that_breaks_in_its_turn_stops_the_run(tmp_path: Path, where: str) -> None:
    class Broken(Big):
        async def start(self) -> None:
            if where == "start":
                raise RuntimeError("no memory")
            await super().start()

        async def close(self) -> None:
            await super().close()
            if where == "close" and self.log == ["start", "close"]:
                self.log.append("broke")
                raise RuntimeError("no memory")

    engines = Big("a"), Broken("bb"), Big("ccc")
    with pytest.raises(harness.api.errors.UserError, match="no memory"):
        execute(plan_with(*engines), Options(output_path=tmp_path / "run", sequential_engines=True))
    Big.started.clear()


def test_a_place_not_taken_is_given_back() -> None:
    async def play() -> list[str]:
        switcher = EngineSwitcher("ab")
        a, b = (Gate(Big(name), shared=Shared(switcher=switcher)) for name in "ab")
        thread = Thread()
        thread.add("user", "?")
        request = Request("x", thread, {}, 1)
        requests = asyncio.create_task(a.complete(request))
        while not Big.started:
            await asyncio.sleep(0)
        requests.cancel()
        other = await b.complete(request)
        await b.close()
        return [other.text, *Big.started]

    assert asyncio.run(asyncio.wait_for(play(), 20)) == ["The answer is 1"]


def test_a_single_engine_has_none_to_switch_to() -> None:
    with pytest.raises(SetupError, match="there is none to switch to"):
        EngineSwitcher(["model"])
