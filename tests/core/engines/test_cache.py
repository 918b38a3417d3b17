"""The response cache around an engine."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.api import Completion, Engine, Request, Thread, plugin
from harness.api.errors import (
    DataError,
    RequestError,
)
from harness.engines.cache import Cache
from harness.engines.gate import Gate, Shared
from harness.engines.mock import Mock
from harness.engines.request_log import RequestLog
from harness.extensions.openai.openai import OpenAI
from tests.conftest import request


def counting(**fields: Any) -> tuple[Mock, list[str]]:
    """An engine that says how often it was asked, and the ids it was asked for."""
    requests: list[str] = []

    def answer(asking: Request) -> Completion:
        requests.append(asking.id)
        return Completion(f"answer {len(requests)}", input_tokens=3, latency=0.5)

    return Mock(function=answer, **fields), requests


def talk(engine: Engine, requests: Sequence[Request]) -> list[str]:
    async def main() -> list[str]:
        await engine.start()
        try:
            return [(await engine.complete(r)).text for r in requests]
        finally:
            await engine.close()

    return asyncio.run(main())


def test_the_same_call_is_asked_once_across_runs(tmp_path: Path) -> None:
    engine, requests = counting()
    path = tmp_path / "deep" / "answers.sqlite"
    assert talk(Cache(engine, path), [request("a"), request("b"), request("a")]) == ["answer 1", "answer 2", "answer 1"]
    later = Cache(engine, path)
    assert talk(later, [request("b"), request("c")]) == ["answer 2", "answer 3"]
    assert len(requests) == 3
    assert later.report() == {"cache_hits": 1, "cache_misses": 1}


@plugin
class Placed(Mock):
    """It is somewhere, or at several places."""

    location = frozenset({"base_url"})
    base_url: str | list[str] = ""


def test_an_answer_of_several_servers_is_one_of_each(tmp_path: Path) -> None:
    requests: list[str] = []

    def heard(share: bool, *places: Any) -> list[int]:
        """How many calls were asked until then, from place to place."""
        counts = []
        for place in places:
            inner = Placed(function=lambda call: requests.append(call.id) or "x", base_url=place)
            talk(Cache(inner, tmp_path / f"{share}", share=share), [request("a")])
            counts.append(len(requests))
        return counts

    assert heard(False, ["a", "b"], ["b", "a"], ["c", "b"], "a", "b", ["a", "d"]) == [1] * 6
    assert heard(False, "c", "d", ["e", "d", "c"], ["f", "e"]) == [2, 3, 3, 4], "found, or asked at a strange one"
    requests.clear()
    assert heard(True, "a", "b", ["c", "d"]) == [1, 1, 1], "a run may go on elsewhere"


def test_a_remembered_answer_is_whole(tmp_path: Path) -> None:
    whole = Completion("t\u2028x", "hm", "length", 1, 2, 3, 4, 5, 0.5)

    async def main() -> list[Completion]:
        engine = Cache(Mock(function=lambda asked: whole), tmp_path / "c")
        await engine.start()
        answers = [await engine.complete(request("a")) for _ in range(2)]
        await engine.close()
        return answers

    assert asyncio.run(main()) == [whole, whole]


def variants() -> dict[str, Request]:
    def made(
        text: str = "a", *, seed: int = 1, sampling: Any = None, constraint: Any = None, system: str = ""
    ) -> Request:
        thread = Thread()
        if system:
            thread.add("system", system)
        thread.add("user", text)
        return Request("id", thread, sampling or {}, seed, constraint)

    return {
        "plain": made(),
        "text": made("b"),
        "seed": made(seed=2),
        "sampling": made(sampling={"temperature": 0.5}),
        "constraint": made(constraint={"choice": ["a"]}),
        "another constraint": made(constraint={"regex": "a"}),
        "history": made(system="Be brief."),
    }


def test_whatever_an_answer_depends_on_is_in_the_key(tmp_path: Path) -> None:
    engine, requests = counting()
    talk(Cache(engine, tmp_path / "c"), list(variants().values()) * 2)
    assert len(requests) == len(variants())


def test_message_boundaries_are_in_the_key(tmp_path: Path) -> None:
    engine, requests = counting()
    joined, apart = Thread(), Thread()
    joined.add("user", "a\nb")
    apart.add("user", "a")
    apart.add("user", "b")
    talk(Cache(engine, tmp_path / "c"), [Request("x", t, {}, 0) for t in (joined, apart)])
    assert len(requests) == 2


def test_engines_share_a_file_and_no_answers_unless_they_are_the_same(tmp_path: Path) -> None:
    path, asked_in_all = tmp_path / "c", []
    for fields in ({"model": "a"}, {"model": "b"}, {"model": "a"}):
        engine, requests = counting(**fields)
        talk(Cache(engine, path), [request("?")])
        asked_in_all.append(len(requests))
    assert asked_in_all == [1, 1, 0]


def test_timeouts_are_no_part_of_what_an_engine_is() -> None:
    def same(one: Engine, other: Engine, location: bool = True) -> bool:
        return one.identity(location=location) == other.identity(location=location)

    assert same(OpenAI(model="m", timeout=1), OpenAI(model="m", timeout=2))
    assert not same(OpenAI(model="m"), OpenAI(model="m", extra_body={"x": 1}))
    here, there = (OpenAI(model="m", base_url=f"http://{host}/v1") for host in ("here", "there"))
    assert same(here, there, location=False) and not same(here, there)


def test_an_engine_that_describes_nothing_is_its_fields(tmp_path: Path) -> None:
    @plugin
    class Bare(Engine):
        size: int = 0
        model = "bare"

        async def complete(self, request: Request) -> Completion:
            return Completion(f"{self.size}")

    assert [talk(Cache(Bare(size=n), tmp_path / "c"), [request("a")]) for n in (1, 2, 1)] == [["1"], ["2"], ["1"]]
    assert Bare(size=3).identity(location=True) == {"size": 3}


def test_errors_are_not_remembered(tmp_path: Path) -> None:
    tries = 0

    def answer(asked: Request) -> str:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise RequestError("no")
        return "fine"

    cache = Cache(Mock(function=answer), tmp_path / "c")
    with pytest.raises(RequestError):
        talk(cache, [request("a")])
    assert talk(cache, [request("a")]) == ["fine"]


def test_a_growing_thread_is_read_once(tmp_path: Path) -> None:
    """No call does work in proportion to history: each message is looked at a single time."""

    class Counted(list[dict[str, str]]):
        read = 0

        def __getitem__(self, at: Any) -> Any:
            got = super().__getitem__(at)
            self.read += len(got) if isinstance(at, slice) else 1
            return got

        def __iter__(self) -> Any:
            raise AssertionError("the whole history was walked")

    thread = Thread()
    thread.messages = Counted()
    requests = []

    async def main() -> None:
        log = RequestLog(tmp_path / "r")
        engine = Cache(Gate(Mock(text="fine"), shared=Shared(log=log)), tmp_path / "c")
        await engine.start()
        for turn in range(50):
            thread.add("user", f"turn {turn}")
            requests.append((await engine.complete(Request(f"e/s/{turn}/0", thread, {}, turn))).text)
            thread.add("assistant", "fine")
        await engine.close()
        log.close()

    asyncio.run(main())
    assert len(requests) == 50
    assert thread.messages.read <= 2 * len(thread.messages)


def test_a_file_that_is_no_cache(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("this is a text, and a long one, to be no database " * 10)
    with pytest.raises(DataError, match="cannot be opened"):
        talk(Cache(Mock(), tmp_path / "c"), [])
    with pytest.raises(DataError, match="cannot be opened"):
        talk(Cache(Mock(), tmp_path / "c" / "below a file"), [])


@pytest.mark.parametrize("row", ["", '{"text": "a"', "[" * 100_000, '{"text": "a", "of_a_later_version": 1}', "7"])
def test_an_answer_that_cannot_be_read_is_asked_again_and_mended(tmp_path: Path, row: str) -> None:
    requests, engine = [request("a"), request("b")], Mock(text="fine")
    talk(Cache(engine, tmp_path / "c"), requests)
    with contextlib.closing(sqlite3.connect(tmp_path / "c", isolation_level=None)) as base:
        base.execute("UPDATE answers SET answer = ?", (row,))
    for misses in (2, 0):
        cache = Cache(engine, tmp_path / "c")
        assert talk(cache, requests) == ["fine", "fine"]
        assert cache.misses == misses


def test_a_cache_and_a_gate_stand_for_their_engine(tmp_path: Path) -> None:
    inner = Mock(model="m")
    engine = Cache(Cache(Gate(inner, 2), tmp_path / "c"), tmp_path / "s", share=True)
    assert engine.model == "m" and engine.engine is inner
    talk(engine, [request("a"), request("a")])
    assert engine.count_tokens("two words") == 2
    assert engine.report() == {"cache_hits": 0, "cache_misses": 1, "calls_asked": 1, "calls_shared": 1}
