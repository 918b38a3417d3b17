"""Model calls that programs make while they play: counted, bounded, recorded, and answered again after a stop."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import field
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import storage
from harness.api import CallsModels, Completion, Engine, InnerRequest, Request, TurnId, plugin
from harness.api.errors import EngineError, LimitReachedError, RequestError
from harness.api.inner_calls import InnerDoor, NoTurnError
from harness.config import resolve, spec
from harness.engines.mock import Mock
from harness.evaluation.stages import execute
from harness.runtime.options import Options
from harness.runtime.runner import BudgetReachedError, RunStoppedError
from harness.storage.inner_calls import InnerCallIndex
from harness.transcripts.reader import Transcripts
from tests.helpers.toy import TOY

Ask = Callable[[str], Awaitable[Completion]]
Program = Callable[[Ask, Request], Awaitable[str]]


@plugin
class Programs(CallsModels):
    """Plays with a coroutine that may ask its model."""

    program: Program = field(repr=False)
    label: str = "program"
    inner: Engine = field(repr=False)
    limits: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def model(self) -> str:
        return self.label

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
    folder: Path,
    program: Program,
    model: Callable[[Request], Any],
    limits: Any = None,
    label: str = "program",
    prices: Any = None,
    **options: Any,
) -> harness.Run:
    data = {"extends": "toy", "matrix": {"agents": [2]}, "tables": [], **({"prices": prices} if prices else {})}
    engine = Programs(program=program, label=label, inner=Mock(model="small", function=model), limits=limits or {})
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
    unpriced = {"unpriced_input_tokens": 40, "unpriced_output_tokens": 8}
    used = {"calls": 4, "input_tokens": 40, "output_tokens": 8, **unpriced, "seconds": 0}
    assert moves and all(move["inner"] | {"seconds": 0} == used for move in moves)
    assert all(move["calls"][0]["input_tokens"] == 40 and "cost" not in move["calls"][0] for move in moves)
    index = InnerCallIndex([tmp_path / "run" / storage.JOURNAL])
    for episode in index.episodes():
        calls = index.of(episode)
        assert {call.model for call in calls} == {"model.inner"} and {call.start for call in calls} == {0}
        texts = Counter(call.request.messages[-1]["content"] for call in calls)
        assert texts == {text: len(calls) // 4 * n for text, n in (("one", 1), ("two", 2), ("answer to one", 1))}
        assert len({call.seed for call in calls}) == len(calls)
    assert run.meta["engine_args"]["model.inner"]["model"] == "small"


def test_equal_calls_have_seeds_of_their_own_and_a_limit_refuses_the_rest(tmp_path: Path) -> None:
    refused: list[str] = []

    async def greedy(ask: Ask, request: Request) -> str:
        for _ in range(5):
            try:
                await ask("more")
            except LimitReachedError as error:
                refused.append(str(error))
        return "a"

    play(tmp_path / "run", greedy, said, {"turn": {"calls": 3}, "seat": {"calls": 5}})
    seats: dict[Any, list[Any]] = {}
    for move in lines(tmp_path / "run", "move"):
        seats.setdefault((move["e"], move["s"]), []).append((move["inner"].get("calls", 0), move["inner"]["refused"]))
    assert seats and all(counts[:3] == [(3, 2), (2, 3), (0, 5)] for counts in seats.values())
    assert set(refused) == {"the limit of 3 calls a turn is reached", "the limit of 5 calls a seat is reached"}
    own = [line for line in lines(tmp_path / "run", "inner") if line["i"] == 0]
    assert len({(line["seed"]) for line in own}) == len(own)
    assert all(not move.get("error") for move in lines(tmp_path / "run", "move"))


@pytest.mark.parametrize("priced", [True, False])
def test_limits_of_money_are_kept_by_prices_or_not_at_all(tmp_path: Path, priced: bool) -> None:
    """12 tokens a call, at 1 USD for a thousand: nine calls are more than 0.1 USD."""

    async def greedy(ask: Ask, request: Request) -> str:
        try:
            while True:
                await ask("more")
        except LimitReachedError:
            return "a"

    prices = {"small": {"input": 1000, "output": 1000}} if priced else {}
    if not priced:
        with pytest.raises(RunStoppedError, match="inner_limits: cost cannot be kept: small has no price") as stop:
            play(tmp_path / "run", greedy, said, {"seat": {"cost": 0.1}}, prices=prices)
        assert "without this engine" not in str(stop.value), "no episode is without it, and none was played"
        assert not lines(tmp_path / "run", "move")
        return
    with pytest.raises(BudgetReachedError):
        play(tmp_path / "run", greedy, said, {"seat": {"cost": 0.1}}, prices=prices, max_calls=20)
    play(tmp_path / "run", greedy, said, {"seat": {"cost": 0.1}}, prices=prices)  # limits hold over a resume
    seats: Counter[Any] = Counter()
    for move in lines(tmp_path / "run", "move"):
        seats[move["e"], move["s"]] += move["inner"].get("calls", 0)
    assert set(seats.values()) == {9} and len(lines(tmp_path / "run", "inner")) == 9 * len(seats)


def test_no_reply_after_a_refused_call_is_a_limited_move(tmp_path: Path) -> None:
    async def stubborn(ask: Ask, request: Request) -> str:
        try:
            while True:
                await ask("more")
        except LimitReachedError:
            raise RequestError("no reply") from None

    run = play(tmp_path / "run", stubborn, said, {"turn": {"tokens": 20}})
    moves = lines(tmp_path / "run", "move")
    assert {move["error_kind"] for move in moves} == {"limit"} and {move["inner"]["calls"] for move in moves} == {2}
    assert moves[0]["error"] == "the limit of 20 tokens a turn is reached; then no reply"
    assert all(score.turns["model"]["inner_limit"] and not score.limited for score in run.scores)


def test_a_spent_budget_stops_in_the_middle_of_a_turn_and_goes_on_there(tmp_path: Path) -> None:
    asked: Counter[str] = Counter()

    def model(request: Request) -> Completion:
        asked[request.id] += 1
        return said(request)

    calm = play(tmp_path / "calm", twice, model)
    whole, bound = dict(asked), 0
    asked.clear()
    while True:
        bound += 7
        try:
            done = play(tmp_path / "wild", twice, model, max_calls=bound, max_concurrency=2)
            break
        except BudgetReachedError as stop:
            assert stop.stopped["asked"]["calls"] == bound == sum(asked.values())
    assert dict(asked) == whole and bound > 21
    assert [score.to_json() for score in done.scores] == [score.to_json() for score in calm.scores]
    assert moves_of(tmp_path / "wild") == moves_of(tmp_path / "calm")
    assert not lines(tmp_path / "wild", "dropped")


def moves_of(folder: Path) -> dict[Any, Any]:
    """What the moves say, but for times."""
    found = {}
    for line in lines(folder, "move"):
        inner = {key: value for key, value in line.pop("inner").items() if key != "seconds"}
        for name in ("crc", "asked", "engine"):
            line.pop(name, None)
        calls = [{key: value for key, value in call.items() if key != "began"} for call in line.get("calls", ())]
        found[line["e"], line["s"], line["i"]] = line | {"inner": inner, "calls": calls}
    return found


def test_a_program_that_goes_another_way_is_a_new_try(tmp_path: Path) -> None:
    """The first start asks a, b, c and hears no more; the second asks a, d."""
    starts: Counter[str] = Counter()

    async def fickle(ask: Ask, request: Request) -> str:
        starts[request.id] += 1
        for text in "abc" if starts[request.id] == 1 else "ad":
            await ask(text)
        return "a"

    with pytest.raises(BudgetReachedError):
        play(tmp_path / "run", fickle, said, max_calls=2, max_concurrency=1)
    play(tmp_path / "run", fickle, said, max_concurrency=1)
    index = InnerCallIndex([tmp_path / "run" / storage.JOURNAL])
    first = min((call for episode in index.episodes() for call in index.of(episode)), key=lambda call: call.start == 0)
    calls = [one for one in index.of(first.episode) if (one.agent, one.index) == (first.agent, first.index)]
    said_of = [(one.request.messages[0]["content"], one.start, one.is_dropped) for one in calls]
    assert said_of in ([("a", 0, False), ("d", 1, False)], [("a", 0, False), ("b", 0, True), ("d", 1, False)])
    [line] = lines(tmp_path / "run", "dropped")
    assert line["n"] == [1]
    moves = [move for move in lines(tmp_path / "run", "move") if move["inner"].get("dropped")]
    assert [(move["e"], move["inner"]["dropped"], move["inner"]["calls"]) for move in moves] == [(line["e"], 1, 2)]


def test_an_inner_engine_that_fails_is_no_fault_of_the_program(tmp_path: Path) -> None:
    """Its own circuit breaker ends the run; the turns are played again once it answers."""
    is_down = True

    def model(request: Request) -> Completion:
        if is_down:
            raise RequestError("overloaded")
        return said(request)

    async def passes_on(ask: Ask, request: Request) -> str:
        try:
            await ask("one")
        except EngineError as error:
            raise RequestError(f"my model: {error}") from None
        return "a"

    with pytest.raises(RunStoppedError, match=r"the first 10 requests to small all failed, the last with: overloaded"):
        play(tmp_path / "run", passes_on, model)
    kinds = {move["error_kind"]: move for move in lines(tmp_path / "run", "move")}
    assert set(kinds) == {"inner"} and kinds["inner"]["engine"] == ["model.inner", 0]
    is_down = False
    run = play(tmp_path / "run", passes_on, model)
    assert all(score.error is None for score in run.scores)
    assert {move.get("error_kind") for moves in [moves_of(tmp_path / "run")] for move in moves.values()} == {None}


def test_a_call_without_a_turn_is_refused(tmp_path: Path) -> None:
    """Between two turns of its seat, and after its episode."""
    asks: dict[str, Ask] = {}
    refused: list[str] = []

    async def late(ask: Ask, request: Request) -> str:
        turn = TurnId.of(request.id)
        asks.setdefault(f"{turn.episode}/{turn.agent}", ask)
        for name, other in asks.items():
            if not name.startswith(turn.episode) or turn.agent == "S1":
                try:
                    await other("now?")
                except NoTurnError as error:
                    refused.append(str(error))
        return "a"

    play(tmp_path / "run", late, said, max_concurrency=1)
    assert "the episode is over" in refused
    turns = {(line["e"], line["s"], line["i"]) for line in lines(tmp_path / "run", "inner")}
    assert turns <= {(line["e"], line["s"], line["i"]) for line in lines(tmp_path / "run", "move")}


def test_calls_of_another_run_and_of_a_cache_are_not_asked_again(tmp_path: Path) -> None:
    asked: list[str] = []

    def model(request: Request) -> Completion:
        asked.append(request.id)
        return said(request)

    async def other(ask: Ask, request: Request) -> str:  # another program: its replies are others, its calls are not
        return await twice(ask, request)

    first = play(tmp_path / "run", twice, model, label="one")
    count = len(asked)
    again = play(tmp_path / "more", other, model, label="two", reuse=tmp_path / "run", use_cache=tmp_path / "cache")
    assert count and len(asked) == count
    assert again.meta["engines"]["model.inner"]["calls_reused"] == {"run": count}
    assert [score.numbers for score in again.scores] == [score.numbers for score in first.scores]
    assert sum(move["inner"]["calls"] for move in lines(tmp_path / "more", "move")) == count


def test_a_transcript_opens_its_turns_to_their_calls(tmp_path: Path) -> None:
    async def talks(ask: Ask, request: Request) -> str:
        first = await ask("one")
        await ask(first.text)
        return "a"

    play(tmp_path / "run", talks, said)
    for transcript in Transcripts(tmp_path / "run", TOY):
        assert transcript.turns
        for turn in transcript.turns:
            one, two = turn.inner
            assert (one.agent, one.index, one.number, two.number) == (turn.agent, turn.index, 0, 1)
            assert one.completion is not None and one.completion.text == "answer to one"
            assert [m["content"] for m in two.request.messages] == ["answer to one"]


def test_a_run_is_replayed_without_its_programs(tmp_path: Path) -> None:
    async def short(ask: Ask, request: Request) -> str:
        try:
            for _ in range(TurnId.of(request.id).index + 1):
                await ask("more")
        except LimitReachedError:
            raise RequestError("no reply") from None
        return "ab?"[request.seed % 3]

    run = play(tmp_path / "run", short, said, {"turn": {"calls": 2}})
    data = {"extends": "toy", "matrix": {"agents": [2]}, "tables": []}
    again = harness.evaluate(data, "replay", model_args={"path": str(tmp_path / "run")}, project=TOY,
                             output_path=tmp_path / "again")  # fmt: skip
    assert any("inner_limit" in score.turns["model"] for score in run.scores)
    assert [score.numbers for score in again.scores] == [score.numbers for score in run.scores]
