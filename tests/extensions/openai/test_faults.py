"""A server that misbehaves in every way it can: the run gets through, or stops and goes on, to the same tables."""

import asyncio
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import storage
from harness.api import Request, Thread
from harness.api.errors import ContextLengthError, EngineFatalError, RefusedError, RequestError
from harness.engines.gate import Gate, Shared, Stop
from harness.engines.mock import Mock
from harness.extensions.openai.openai import OpenAI
from harness.runtime.runner import RunStoppedError
from harness.storage import finished_episodes
from tests.helpers.fake_openai import (
    Body,
    FakeOpenAI,
    Fault,
    chat,
    empty_choices,
    garbage,
    half,
    hang,
    malformed,
    not_json,
    raw,
    reset,
    status,
    unreadable,
)
from tests.helpers.toy import TOY, results

PASSING = [
    status(429, "slow down", headers={"Retry-After": "0"}),
    status(408),
    status(500),
    status(502),
    status(503),
    reset,
    half,
    garbage,
    not_json,
    empty_choices,
    raw('{"error": {"message": "upstream is busy"}}'),
    raw("null"),
    raw(""),
    *unreadable.values(),
    *malformed.values(),
]
TOO_LONG = status(400, "This model's maximum context length is 8 tokens.")
DEAD = status(500, "EngineCore encountered an issue: CUDA error: device-side assert triggered")


def said(seed: int) -> str:
    """What the model answers to a call: by its seed, now and then something unreadable."""
    return "?" if seed % 10 == 8 else "ab"[seed % 2]


class Model:
    """The model behind the server. Every answer's `prompt_tokens` are the call's seed, so that journals name calls."""

    def __init__(self) -> None:
        self.tries: Counter[int] = Counter()
        self.asked: set[int] = set()
        self.dies_after: int | None = None
        self.death: Fault = DEAD

    def answer(self, body: Body) -> Body:
        return chat(said(body["seed"]), {"prompt_tokens": body["seed"], "completion_tokens": 1, "total_tokens": 1})

    def faults(self, body: Body) -> Fault | None:
        """A fifth of all requests goes wrong, no call more than four times."""
        seed = body["seed"]
        self.asked.add(seed)
        if self.dies_after is not None and len(self.asked) > self.dies_after:
            return self.death
        self.tries[seed] += 1
        rng = random.Random(f"{seed} {self.tries[seed]}")
        if self.tries[seed] <= 4 and rng.random() < 0.2:
            return hang if rng.random() < 0.005 else rng.choice(PASSING)
        return TOO_LONG if seed % 10 == 9 else None


def calm(request: Request) -> str:
    seed = request.seed & 0x7FFFFFFF
    if seed % 10 == 9:
        raise ContextLengthError("too long")
    return said(seed)


def recorded(folder: Path) -> list[int]:
    """The seeds of all calls that are in the journal with their answers."""
    moves = {(m["e"], m["s"], m["i"]): m for _, m in storage.lines(folder / "journal.jsonl") if m["k"] == "move"}
    return [call["input_tokens"] for move in moves.values() for call in move.get("calls", ())]


def play(folder: Path, model: Any, repeats: int, **more: Any) -> harness.Run:
    return harness.evaluate("toy", model, repeats=repeats, output_path=folder, project=TOY, max_concurrency=64, **more)


@pytest.mark.slow
def test_a_thousand_calls_to_a_server_that_fails_at_a_fifth_of_them(tmp_path: Path) -> None:
    """Faults of every kind; the model dies; everything fails; then it goes on. Nothing shows, nothing is twice."""
    repeats = 17
    play(tmp_path / "calm" / "run", Mock(model="fake", function=calm), repeats)
    wild, model, before = tmp_path / "wild" / "run", Model(), set[int]()
    with FakeOpenAI(model.answer, faults=model.faults) as server:
        engine = {"base_url": server.url, "model": "fake", "backoff": 0.0, "max_backoff": 0.0, "timeout": 2.0}
        for dies_after, death, says in (
            (350, DEAD, r"the model at http://127.* has died: .*CUDA error"),
            (350, status(503, "overloaded"), r"2[5-9] of the last 100 requests to fake failed, .*overloaded"),
        ):
            model.asked, model.dies_after, model.death = set(), dies_after, death
            with pytest.raises(RunStoppedError, match=says):
                play(wild, "openai", repeats, model_args=engine)
            assert len(model.asked) <= dies_after + 2 * 64, "nothing new is asked of a dead engine"
            assert not model.asked & before, "paid for already"
            before = set(recorded(wild))
            assert len(before) == len(recorded(wild)) > 200
        model.asked, model.dies_after = set(), None
        done = play(wild, "openai", repeats, model_args=engine)
    assert not model.asked & before and len(before | model.asked) > 1000
    assert len(recorded(wild)) == len(set(recorded(wild)))
    assert results(wild) == results(tmp_path / "calm" / "run")
    report = done.meta["engines"]["model"]
    assert report["retries"] > 0.15 * report["requests"]


@pytest.mark.slow
def test_a_failing_model_leaves_no_results_while_the_other_goes_on(tmp_path: Path) -> None:
    dying = Model()
    with FakeOpenAI() as well, FakeOpenAI(faults=lambda body: dying.faults(body), models=["other"]) as ill:
        for server in (well, ill):
            server.answer = lambda body: said(body["seed"])
        other = f'{{use: openai, base_url: "{ill.url}", model: other, backoff: 0, timeout: 2}}'
        overrides = (f"models={{other: {other}}}", "agents={default: model, second: {model: other, count: 1}}",
                "protocol.rounds=6")  # fmt: skip
        engine = {"base_url": well.url, "model": "fake", "backoff": 0}
        play(tmp_path / "calm" / "run", "openai", 5, model_args=engine, overrides=overrides)
        dying.dies_after, dying.death, dying.asked = 60, status(503, "overloaded"), set()
        with pytest.raises(RunStoppedError, match="requests to other failed"):
            play(tmp_path / "wild" / "run", "openai", 5, model_args=engine, overrides=overrides)
        dying.dies_after = None
        play(tmp_path / "wild" / "run", "openai", 5, model_args=engine, overrides=overrides)
    assert results(tmp_path / "wild" / "run") == results(tmp_path / "calm" / "run")


def test_what_is_in_flight_when_an_engine_is_gone_is_waited_for_and_recorded(tmp_path: Path) -> None:
    requests: list[str] = []
    answered: list[str] = []

    async def answer(request: Request) -> str:
        requests.append(request.id)
        if len(requests) == 6:
            raise EngineFatalError("gone")
        for _ in range(50):  # the others are still at it when it goes
            await asyncio.sleep(0)
        answered.append(request.id)
        return "a"

    with pytest.raises(RunStoppedError, match="gone"):
        play(tmp_path / "r", Mock(function=answer), 1)
    lines = [line for _, line in storage.lines(tmp_path / "r" / "journal.jsonl")]
    assert {f"{m['e']}/{m['s']}/{m['i']}/0" for m in lines} == set(answered)
    assert len(answered) == len(requests) - 1 >= 5
    once = set(requests)
    requests[:] = ["five"] * 10
    play(tmp_path / "r", Mock(function=answer), 1)
    assert not set(answered[: len(once) - 1]) & set(requests), "nothing is asked twice"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("rate", "stops"), [(0.25, True), (0.0, True), (1.0, False)])
def test_a_server_that_only_fails_stops_the_run(tmp_path: Path, rate: float, stops: bool) -> None:
    requests: list[str] = []

    def fail(request: Request) -> str:
        requests.append(request.id)
        raise RequestError("no")

    if stops:
        with pytest.raises(
            RunStoppedError,
            match="first 10 requests to mock all failed, .*: no" if rate else "1 of the last 1 requests",
        ):
            play(tmp_path / "r", Mock(function=fail), 10, max_error_rate=rate)
        first = min(rate * 100, 9)  # it has never answered: a share of a hundred is not waited for
        assert first < len(requests) <= first + 64
    else:
        done = play(tmp_path / "r", Mock(function=fail), 10, max_error_rate=rate)
        assert len(requests) == 600 and len(done.failed) == len(done.scores), "no number comes from no answer"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("last", [1, 24])
def test_a_server_that_dies_at_the_very_end_leaves_nothing_in_the_results(tmp_path: Path, last: int) -> None:
    play(tmp_path / "calm" / "r", Mock(function=calm), 2)
    requests: list[str] = []
    play(tmp_path / "count", Mock(function=lambda request: requests.append(request.id) or calm(request)), 2)
    total, requests[:] = len(requests), []

    def dying(request: Request) -> str:
        requests.append(request.id)
        if total - last < len(requests) <= total:
            raise RequestError("still failing after 7 tries")
        return calm(request)

    folder = tmp_path / "wild" / "r"
    with pytest.raises(RunStoppedError, match=r"the last requests to mock failed, and nothing was answered since: "):
        play(folder, Mock(function=dying), 2)
    assert not (folder / "scores.jsonl").exists()
    requests += [""] * total  # it is back
    play(folder, Mock(function=dying), 2)
    assert results(folder) == results(tmp_path / "calm" / "r")


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["no HTTP", "bad chunk size", "a huge header", "not modified"])
def test_a_server_whose_every_response_is_malformed_stops_the_run(tmp_path: Path, fault: str) -> None:
    fields = {"model": "fake", "backoff": 0.0, "max_retries": 1}
    with FakeOpenAI(faults=lambda body: malformed[fault]) as server:
        with pytest.raises(RunStoppedError, match=r"requests to fake all failed, .*max_error_rate"):
            play(tmp_path / "r", "openai", 1, model_args={**fields, "base_url": server.url})
        assert not (tmp_path / "r" / "scores.jsonl").exists()
        server.faults = lambda body: None
        server.answer = lambda body: said(body["seed"])
        play(tmp_path / "r", "openai", 1, model_args={**fields, "base_url": server.url})
    counting = [
        line for _, line in finished_episodes.confirmed(tmp_path / "r" / "journal.jsonl") if line["k"] == "move"
    ]
    assert counting and not {line.get("error_kind") for line in counting} & {"request", "refused"}


def test_what_one_request_finds_ends_the_waiting_of_the_engines_others(tmp_path: Path) -> None:
    slow = status(503, "overloaded", headers={"Retry-After": "3600"})
    faults = iter([slow] * 5 + [DEAD])
    with FakeOpenAI(faults=lambda body: next(faults, None), models=["fake", "other"]) as server:
        fields: dict[str, Any] = {"base_url": server.url, "max_backoff": 3600.0}

        async def talk() -> None:
            stop = Stop()
            one, two = (Gate(OpenAI(model=name, **fields), shared=Shared(stop=stop)) for name in ("fake", "other"))
            await one.start()
            await two.start()
            try:
                waiting = [asyncio.create_task(one.complete(Request(f"{k}", Thread(), {}, k))) for k in range(5)]
                while len(server.bodies) < 5:
                    await asyncio.sleep(0)
                with pytest.raises(EngineFatalError, match="CUDA"):
                    await one.complete(Request("x", Thread(), {}, 1))
                ended = await asyncio.gather(*waiting, return_exceptions=True)
                assert [type(one) for one in ended] == [EngineFatalError] * 5 and "CUDA" in str(ended[0])
                assert len(server.bodies) == 6
                await two.complete(Request("y", Thread(), {}, 1))
                assert stop.reason is None, "another engine goes on"
            finally:
                await one.close()
                await two.close()

        asyncio.run(talk())


@pytest.mark.slow
def test_samples_hold_nothing_that_was_not_believed(tmp_path: Path) -> None:
    count = 0

    def dying(request: Request) -> str:
        nonlocal count
        count += 1
        if 12 < count <= 400:
            raise RequestError("no")
        return calm(request)

    folder = tmp_path / "r"
    with pytest.raises(RunStoppedError):
        play(folder, Mock(function=dying), 10, log_samples=True)
    count = 1000
    done = play(folder, Mock(function=dying), 10, log_samples=True)
    samples = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    assert sorted(sample["episode"] for sample in samples) == sorted(score.id for score in done.scores)
    assert not any(move.get("error") == "no" for s in samples for batch in s["moves"] for move in batch)


def test_what_is_the_requests_own_fault_stops_nothing(tmp_path: Path) -> None:
    def refuse(request: Request) -> str:
        if request.id.endswith("/0/0"):
            return "ab"[request.seed % 2]
        raise RefusedError("no such words here")

    done = play(tmp_path / "r", Mock(function=refuse), 1, max_error_rate=0.99)
    assert len(done.scores) == 8 and not done.failed
    again = play(tmp_path / "again", "replay", 1, model_args={"path": str(tmp_path / "r")}, max_error_rate=0)
    assert results(tmp_path / "again")["scores.jsonl"] == results(tmp_path / "r")["scores.jsonl"] and again.scores


def test_failures_that_a_run_was_allowed_are_replayed_to_its_end(tmp_path: Path) -> None:
    def fail(request: Request) -> str:
        raise RequestError("no")

    play(tmp_path / "r", Mock(function=fail), 1, max_error_rate=1)
    play(tmp_path / "again", "replay", 1, model_args={"path": str(tmp_path / "r")})
    assert results(tmp_path / "again")["scores.jsonl"] == results(tmp_path / "r")["scores.jsonl"]


@pytest.mark.slow
def test_what_failed_while_everything_failed_is_asked_again(tmp_path: Path) -> None:
    play(tmp_path / "calm" / "r", Mock(function=calm), 20)
    count = 0

    def dying(request: Request) -> str:
        nonlocal count
        count += 1
        if 300 < count <= 400:
            raise RequestError("overloaded")
        return calm(request)

    with pytest.raises(RunStoppedError, match="overloaded"):
        play(tmp_path / "wild" / "r", Mock(function=dying), 20)
    count = 1000
    play(tmp_path / "wild" / "r", Mock(function=dying), 20)
    assert results(tmp_path / "wild" / "r") == results(tmp_path / "calm" / "r")


def test_a_cache_that_cannot_be_written_stops_the_run_and_loses_no_answer(tmp_path: Path) -> None:
    import sqlite3

    base = sqlite3.connect(tmp_path / "cache")
    requests = []

    def answer(request: Request) -> str:
        requests.append(request.id)
        if len(requests) == 10:
            base.execute("DROP TABLE answers")  # the file is no cache any more
            base.commit()
        return "a"

    with pytest.raises(RunStoppedError, match=r"response cache .* fails: no such table(.|\n)*give the same command"):
        play(tmp_path / "r", Mock(function=answer), 1, use_cache=tmp_path / "cache")
    base.close()
    items = [line for _, line in storage.lines(tmp_path / "r" / "journal.jsonl") if line["k"] == "move"]
    assert {f"{m['e']}/{m['s']}/{m['i']}/0" for m in items} == set(requests) and not any("error" in m for m in items)
    before, requests[:] = set(requests), ["x"] * 20
    assert not play(tmp_path / "r", Mock(function=answer), 1, use_cache=tmp_path / "other").failed
    assert not before & set(requests)


def test_a_removed_journal_is_noticed_before_the_run_is_finished(tmp_path: Path) -> None:
    requests: list[str] = []

    def answer(request: Request) -> str:
        requests.append(request.id)
        if len(requests) == 30:
            (tmp_path / "r" / "journal.jsonl").unlink()
        return "a"

    with pytest.raises(RunStoppedError, match=r"cannot write .*journal.jsonl: something else has removed it"):
        play(tmp_path / "r", Mock(function=answer), 1)
    assert not (tmp_path / "r" / "scores.jsonl").exists()
    assert len(play(tmp_path / "r", Mock(function=answer), 1).scores) == 8
