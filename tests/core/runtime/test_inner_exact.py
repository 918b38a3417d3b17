"""Calls of agents' programs, where a process ends in the middle: each is answered by its own record, once."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import storage
from harness.api import Completion, Engine, InnerRequest, Request, TurnId, plugin
from harness.api.errors import EngineError, RequestError
from harness.api.inner_calls import NoTurnError
from harness.config import resolve, spec
from harness.engines.mock import Mock
from harness.evaluation.stages import execute
from harness.runtime.inner_seats import OpenSeats
from harness.runtime.options import Options
from harness.storage.inner_calls import InnerCall, InnerCallIndex, InnerWriter, dropped_line, restored
from tests.helpers.programs import Ask, Programs, said
from tests.helpers.toy import TOY


def played(folder: Path, engine: Engine, rounds: int = 1, **options: Any) -> Any:
    """A run of one episode of two agents."""
    task = {"use": "pick", "agents": "${agents}", "cases_made": 1}
    data = {"extends": "toy", "matrix": {"agents": [2]}, "tables": [], "task": task,
            "protocol": {"use": "rounds", "rounds": rounds, "parse_retries": 0}}  # fmt: skip
    return execute(resolve.plan(spec.parse(data, TOY), TOY, engine), Options(output_path=folder, **options))


def lines(folder: Path, *kinds: str) -> list[Any]:
    return [line for _, line in storage.lines(folder / storage.JOURNAL) if line["k"] in kinds]


def killed(folder: Path, left: Callable[[Any], bool]) -> None:
    """Leave in the journal what had come to the disk when the process was killed."""
    path = folder / storage.JOURNAL
    kept = [line for line in path.read_bytes().splitlines(keepends=True) if left(json.loads(line))]
    path.write_bytes(b"".join(kept))
    meta = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({name: value for name, value in meta.items() if name != "journals"}))


async def five(ask: Ask, request: Request) -> str:
    """Five equal calls at the same time; the reply is all answers in order."""
    return "".join(answer.text for answer in await asyncio.gather(*(ask("same") for _ in range(5))))


def by_seed(asked: list[int]) -> Mock:
    def model(request: Request) -> Completion:
        asked.append(request.seed)
        return Completion(f"<{request.seed}>")

    return Mock(model="small", function=model)


def replies(folder: Path) -> dict[Any, Any]:
    return {(m["e"], m["s"], m["i"]): [one["text"] for one in m["calls"]] for m in lines(folder, "move")}


def first_and_no_end(line: Any) -> bool:
    """The first of the five was under way."""
    return line["k"] not in ("move", "end") and not (line["k"] == "inner" and line["n"] == 0)


def test_equal_calls_at_the_same_time_keep_their_own_answers(tmp_path: Path) -> None:
    calm, wild = list[int](), list[int]()
    played(tmp_path / "calm", Programs(program=five, inner=by_seed(calm)))
    played(tmp_path / "wild", Programs(program=five, inner=by_seed(wild)))
    killed(tmp_path / "wild", first_and_no_end)
    known = {line["seed"] for line in lines(tmp_path / "wild", "inner")}
    wild.clear()
    played(tmp_path / "wild", Programs(program=five, inner=by_seed(wild)))
    assert len(known) == 8 and sorted(wild) == sorted(set(calm) - known)
    assert replies(tmp_path / "wild") == replies(tmp_path / "calm")


@plugin
class Remembers(Programs):
    """Plays its first turn again in the second one, as a program that has lost its memory."""

    async def complete(self, request: Request) -> Completion:
        turn = TurnId.of(request.id)
        seat = self.door.seat(turn.episode, turn.agent)

        async def ask(text: str) -> Completion:
            return await seat.complete(InnerRequest("chat", "any", [{"role": "user", "content": text}]))

        if turn.index:
            seat.replaying = (0, 0)
            text = await self.program(ask, request)
            seat.replaying = (0, 0)  # and once more
            assert await self.program(ask, request) == text
            seat.replaying = None
            return Completion(text)
        return Completion(await self.program(ask, request))


def test_an_earlier_turn_is_played_again_with_its_own_answers(tmp_path: Path) -> None:
    asked: list[int] = []
    played(tmp_path / "run", Remembers(program=five, inner=by_seed(asked)), rounds=2)
    killed(tmp_path / "run", lambda line: first_and_no_end(line) and line.get("i", 0) == 0)
    played(tmp_path / "run", Remembers(program=five, inner=by_seed(asked)), rounds=2)
    texts = replies(tmp_path / "run")
    assert len(texts) == 4
    assert all(text == texts[episode, agent, 0] for (episode, agent, _), text in texts.items())


def test_an_outage_that_is_over_is_not_played_again(tmp_path: Path) -> None:
    is_down = True

    def model(request: Request) -> Completion:
        if is_down:
            raise RequestError("overloaded")
        return said(request)

    async def once(ask: Ask, request: Request) -> str:
        return (await ask("one")).text

    engine = Remembers(program=once, inner=Mock(model="small", function=model))
    played(tmp_path / "run", engine, rounds=2, max_error_rate=1.0)
    killed(tmp_path / "run", lambda line: line["k"] not in ("move", "end") and line.get("i", 0) == 0)
    assert {line["error"] for line in lines(tmp_path / "run", "inner")} == {"overloaded"}
    is_down = False
    played(tmp_path / "run", engine, rounds=2)
    assert {text for [text] in replies(tmp_path / "run").values()} == {"answer to one"}
    assert len(lines(tmp_path / "run", "inner")) == 4  # two failures, and two answers


def test_a_failure_that_the_program_took_stays_one(tmp_path: Path) -> None:
    """The program asks a second time by itself; played again, it fails and asks again as before."""
    downs = Counter[str]()

    def model(request: Request) -> Completion:
        downs[request.id.rpartition("/")[0]] += 1
        if downs[request.id.rpartition("/")[0]] == 1:
            raise RequestError("overloaded")
        return Completion(str(request.seed))

    async def stubborn(ask: Ask, request: Request) -> str:
        try:
            return (await ask("one")).text
        except EngineError:
            return f"again {(await ask('one')).text}"

    engine = Remembers(program=stubborn, inner=Mock(model="small", function=model))
    played(tmp_path / "run", engine, rounds=2, max_error_rate=1.0)
    texts = replies(tmp_path / "run")
    assert all(text == texts[e, s, 0] and text[0].startswith("again ") for (e, s, _), text in texts.items())


@pytest.mark.parametrize("how", ["use_cache", "reuse"])
def test_a_cache_gives_the_answers_of_the_model_and_not_the_agents(tmp_path: Path, how: str) -> None:
    asked: list[int] = []
    more: dict[str, Any] = {"use_cache": tmp_path / "cache"} if how == "use_cache" else {}
    first = played(tmp_path / "run", Programs(program=five, inner=by_seed(asked)), **more)
    asked.clear()
    more = more or {"reuse": tmp_path / "run"}
    again = played(tmp_path / "more", Programs(program=five, inner=by_seed(asked)), **more)
    assert asked == []
    assert [score.numbers for score in again.scores] == [score.numbers for score in first.scores]
    assert {move["inner"]["calls"] for move in lines(tmp_path / "more", "move")} == {5}
    played(tmp_path / "more", Programs(program=five, inner=by_seed(asked)), **more)  # there is nothing left to play
    assert asked == []


@plugin
class OneAtOnce(Engine):
    """Answers a turn's first call at once, and the others when the program has replied."""

    asked: list[str]
    replied: asyncio.Event

    @property
    def model(self) -> str:
        return "slow"

    async def complete(self, request: Request) -> Completion:
        self.asked.append(request.id)
        if len(self.asked) % 2 == 0:
            await self.replied.wait()
            for _ in range(20):
                await asyncio.sleep(0)
        return Completion("x", input_tokens=1, output_tokens=1)


def test_calls_that_wait_when_their_turn_ends_are_not_asked(tmp_path: Path) -> None:
    asked: list[str] = []
    replied = asyncio.Event()
    others: list[asyncio.Task[Completion]] = []

    async def hasty(ask: Ask, request: Request) -> str:
        replied.clear()
        own = [asyncio.ensure_future(ask(str(i))) for i in range(20)]
        others.extend(own)
        await own[0]
        while len(asked) % 2:  # the second is under way, the others wait at the gate
            await asyncio.sleep(0)
        late = asyncio.ensure_future(ask("late"))  # it has not even begun when the turn ends
        others.append(late)
        replied.set()
        return "a"

    engine = OneAtOnce(asked=asked, replied=replied)
    played(tmp_path / "run", Programs(program=hasty, inner=engine), max_concurrency=1)
    moves = lines(tmp_path / "run", "move")
    assert len(moves) == 2 and len(asked) == len(lines(tmp_path / "run", "inner")) == 4
    assert [move["inner"]["calls"] for move in moves] == [2, 2]
    failures = [one.exception() for one in others if one.done() and not one.cancelled()]
    assert sum(isinstance(one, NoTurnError) for one in failures) == 38


def test_what_was_dropped_may_stand_before_its_calls(tmp_path: Path) -> None:
    """A worker's journal is read after the run's own, which may name what is in it."""
    turn, ask = TurnId("e", "A1", 0, 0), InnerRequest("chat", "m", [{"role": "user", "content": "x"}])
    digest, answer = ask.digest, Completion("y")
    calls = [InnerCall("e", "A1", 0, 0, n, 0, "small", ask, n + 70, answer, None, None, digest) for n in range(3)]
    own = [dropped_line(turn, [1, 2]), *(InnerWriter().line(call) for call in calls)]
    assert [call.is_dropped for call in restored(own)] == [False, True, True]
    recorded = OpenSeats({}, own).attempts["A1"][0, 0]
    assert set(recorded.by_seed) == {70} and recorded.next == 3


def test_numbers_of_dropped_calls_are_not_given_again(tmp_path: Path) -> None:
    """The second process dies after it has noted that none of the first one's calls was made again."""
    texts = iter(["a"] * 2 + [""] * 2 + ["c"] * 2)

    async def fickle(ask: Ask, request: Request) -> str:
        text = next(texts)
        return (await ask(text)).text if text else "a"

    for _ in range(3):
        played(tmp_path / "run", Programs(program=fickle, inner=Mock(model="small", function=said)))
        killed(tmp_path / "run", lambda line: line["k"] not in ("move", "end"))
    index = InnerCallIndex([tmp_path / "run" / storage.JOURNAL])
    found = [(call.agent, call.number, call.request.messages[0]["content"], call.is_dropped)
             for episode in index.episodes() for call in index.of(episode)]  # fmt: skip
    agents = sorted({agent for agent, *_ in found})
    assert len(agents) == 2
    assert found == [(agent, n, "ac"[n], n < 1) for agent in agents for n in range(2)]


def test_a_turn_does_not_go_on_with_what_an_abandoned_program_played_again(tmp_path: Path) -> None:
    @plugin
    class Leaves(Programs):
        """Is left in the middle of an earlier turn."""

        async def complete(self, request: Request) -> Completion:
            turn = TurnId.of(request.id)
            seat = self.door.seat(turn.episode, turn.agent)
            assert seat.replaying is None
            done = await super().complete(request)
            seat.replaying = (0, 0)
            return done

    async def once(ask: Ask, request: Request) -> str:
        return (await ask("one")).text

    asked: list[int] = []
    played(tmp_path / "run", Leaves(program=once, inner=by_seed(asked)), rounds=2)
    assert len(asked) == len(set(asked)) == 4
