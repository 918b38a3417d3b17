"""Limiter, cache and recorder around an engine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.api import Completion, Engine, Request, Thread, derive_seed, plugin
from harness.engines.mock import Mock
from harness.engines.openai import OpenAI
from harness.engines.replay import Replay
from harness.engines.wrappers import Cache, Limiter, Recorder, Shared
from harness.errors import (
    DataError,
    EngineFatalError,
    RequestError,
    SetupError,
    StorageError,
)
from tests.conftest import request


def counting(**fields: Any) -> tuple[Mock, list[str]]:
    """An engine that says how often it was asked, and the ids it was asked for."""
    asked: list[str] = []

    def answer(asking: Request) -> Completion:
        asked.append(asking.id)
        return Completion(f"answer {len(asked)}", input_tokens=3, latency=0.5)

    return Mock(function=answer, **fields), asked


def talk(engine: Engine, requests: Sequence[Request]) -> list[str]:
    async def main() -> list[str]:
        await engine.start()
        try:
            return [(await engine.complete(r)).text for r in requests]
        finally:
            await engine.close()

    return asyncio.run(main())


# ---------------------------------------------------------------------------------- limiter


def test_the_limiter_lets_so_many_through_and_all_in_the_end() -> None:
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
        engine = Limiter(Mock(function=answer), max_concurrency=3)
        return await asyncio.gather(*(engine.complete(request("?", key=k)) for k in range(20)))

    assert [a.text for a in asyncio.run(main())] == [f"test/{k}/0/0" for k in range(20)]
    assert peak == 3


def test_a_failure_frees_its_slot() -> None:
    def answer(asked: Request) -> str:
        if asked.id == "test/0/0/0":
            raise RequestError("no")
        return "fine"

    async def main() -> list[Any]:
        engine = Limiter(Mock(function=answer), max_concurrency=1)
        return await asyncio.gather(*(engine.complete(request("?", key=k)) for k in range(3)), return_exceptions=True)

    failed, *others = asyncio.run(main())
    assert isinstance(failed, RequestError) and [o.text for o in others] == ["fine", "fine"]


@pytest.mark.parametrize("limit", [0, -1, "a", 1.5, None, True])
def test_a_limit_below_one_or_of_no_number_is_refused(limit: Any) -> None:
    with pytest.raises(SetupError, match=f"a whole number, at least 1, not {limit!r}"):
        Limiter(Mock(), max_concurrency=limit)


# ---------------------------------------------------------------------------------- cache


def test_the_same_call_is_asked_once_across_runs(tmp_path: Path) -> None:
    engine, asked = counting()
    path = tmp_path / "deep" / "answers.sqlite"
    assert talk(Cache(engine, path), [request("a"), request("b"), request("a")]) == ["answer 1", "answer 2", "answer 1"]
    later = Cache(engine, path)
    assert talk(later, [request("b"), request("c")]) == ["answer 2", "answer 3"]
    assert len(asked) == 3
    assert later.report() == {"cache_hits": 1, "cache_misses": 1}


@plugin
class Placed(Mock):
    """It is somewhere, or at several places."""

    location = frozenset({"base_url"})
    base_url: str | list[str] = ""


def test_an_answer_of_several_servers_is_one_of_each(tmp_path: Path) -> None:
    asked: list[str] = []

    def heard(kind: type[Cache], *places: Any) -> list[int]:
        """How many calls were asked until then, from place to place."""
        counts = []
        for place in places:
            inner = Placed(function=lambda call: asked.append(call.id) or "x", base_url=place)
            talk(kind(inner, tmp_path / kind.__name__), [request("a")])
            counts.append(len(asked))
        return counts

    assert heard(Cache, ["a", "b"], ["b", "a"], ["c", "b"], "a", "b", ["a", "d"]) == [1] * 6
    assert heard(Cache, "c", "d", ["e", "d", "c"], ["f", "e"]) == [2, 3, 3, 4], "found, or asked at a strange one"
    asked.clear()
    assert heard(Shared, "a", "b", ["c", "d"]) == [1, 1, 1], "a run may go on elsewhere"


def test_a_remembered_answer_is_whole(tmp_path: Path) -> None:
    whole = Completion("t\u2028x", "hm", "length", 1, 2, 3, 4, 0.5)

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
    engine, asked = counting()
    talk(Cache(engine, tmp_path / "c"), list(variants().values()) * 2)
    assert len(asked) == len(variants())


def test_message_boundaries_are_in_the_key(tmp_path: Path) -> None:
    engine, asked = counting()
    joined, apart = Thread(), Thread()
    joined.add("user", "a\nb")
    apart.add("user", "a")
    apart.add("user", "b")
    talk(Cache(engine, tmp_path / "c"), [Request("x", t, {}, 0) for t in (joined, apart)])
    assert len(asked) == 2


def test_engines_share_a_file_and_no_answers_unless_they_are_the_same(tmp_path: Path) -> None:
    path, asked_in_all = tmp_path / "c", []
    for fields in ({"model": "a"}, {"model": "b"}, {"model": "a"}):
        engine, asked = counting(**fields)
        talk(Cache(engine, path), [request("?")])
        asked_in_all.append(len(asked))
    assert asked_in_all == [1, 1, 0]


def test_timeouts_are_no_part_of_what_an_engine_is() -> None:
    def identity(engine: Engine) -> dict[str, Any]:
        return {k: v for k, v in engine.describe().items() if k not in engine.incidental}

    assert identity(OpenAI(model="m", timeout=1)) == identity(Limiter(OpenAI(model="m", timeout=2), 3))
    assert identity(OpenAI(model="m")) != identity(OpenAI(model="m", extra_body={"x": 1}))


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
        engine = Recorder(Cache(Mock(text="fine"), tmp_path / "c"), tmp_path / "r")
        await engine.start()
        for turn in range(50):
            thread.add("user", f"turn {turn}")
            requests.append((await engine.complete(Request(f"e/s/{turn}/0", thread, {}, turn))).text)
            thread.add("assistant", "fine")
        await engine.close()

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


# ---------------------------------------------------------------------------------- recorder


def test_a_recording_answers_like_the_engine_did(tmp_path: Path) -> None:
    def answer(asked: Request) -> Completion:
        if asked.id.endswith("2/0"):
            raise RequestError("refused")
        return Completion(asked.thread.messages[-1]["content"].upper(), reasoning="hm", output_tokens=1)

    async def play(engine: Engine) -> list[Any]:
        await engine.start()
        came: list[Any] = []
        for seat in ("Alice", "Bob"):
            thread = Thread()
            for turn in range(4):
                thread.add("user", f"{seat} {turn}")
                try:
                    came.append(await engine.complete(Request(f"e/{seat}/{turn}/0", thread, {"top_p": 0.5}, turn)))
                    thread.add("assistant", came[-1].text)
                except RequestError as error:
                    came.append(str(error))
        await engine.close()
        return came

    file = tmp_path / "calls.jsonl"
    first = asyncio.run(play(Recorder(Mock(function=answer, model="m"), file)))
    replay = Replay(path=str(file))
    assert asyncio.run(play(replay)) == first
    assert "refused" in first and replay.model == "m"
    with pytest.raises(EngineFatalError):
        asyncio.run(replay.complete(request("never asked")))


def test_every_message_is_written_once_and_threads_can_be_put_together_again(tmp_path: Path) -> None:
    threads = [Thread(), Thread()]
    requests = []

    async def main() -> None:
        engine = Recorder(Mock(text="fine"), tmp_path / "r")
        await engine.start()
        for turn in range(3):
            for number, thread in enumerate(threads):
                thread.add("user", f"{number}: turn {turn}")
                asked = Request(f"e/{number}/{turn}/0", thread, {"top_k": 3}, derive_seed(turn))
                requests.append(asked)
                await engine.complete(asked)
                thread.add("assistant", "fine")
        await engine.close()

    asyncio.run(main())
    rows = [json.loads(line) for line in (tmp_path / "r").read_text().splitlines()]
    assert [r["id"] for r in rows] == [r.id for r in requests]
    assert rows[0]["sampling"] == {"top_k": 3} and rows[0]["seed"] == derive_seed(0)
    again: dict[int, list[Any]] = {}
    for row in rows:
        told = again.setdefault(row["thread"], [])
        assert len(told) == row["start"]
        told += row["messages"]
    assert list(again.values()) == [t.messages[:-1] for t in threads]


@pytest.mark.parametrize("torn", ['{"id": "e/s/9', '{"id": "' + "x" * 200_000])
def test_a_recording_goes_on_after_a_crash(tmp_path: Path, torn: str) -> None:
    file = tmp_path / "calls.jsonl"
    talk(Recorder(Mock(text="one"), file), [request("a", key=1)])
    with file.open("a") as broken:
        broken.write(torn)
    talk(Recorder(Mock(text="two"), file), [request("a", key=2)])
    replay = Replay(path=str(file))
    assert talk(replay, [request("a", key=1), request("a", key=2)]) == ["one", "two"]


def test_an_empty_or_wholly_torn_recording_starts_anew(tmp_path: Path) -> None:
    for content in ("", '{"id'):
        (tmp_path / "r").write_text(content)
        talk(Recorder(Mock(text="one"), tmp_path / "r"), [request("a")])
        assert len((tmp_path / "r").read_text().splitlines()) == 1


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        talk(Recorder(Mock(), tmp_path / "file" / "r"), [])


def test_no_answer_is_lost_where_it_cannot_be_recorded(tmp_path: Path) -> None:
    engine, asked = counting()
    recorder = Recorder(engine, tmp_path / "r")

    async def main(more: int) -> None:
        await recorder.start()
        assert recorder._journal is not None
        recorder._journal._file.close()  # the disk is gone
        try:
            assert (await recorder.complete(request("a"))).text.startswith("answer")
            with pytest.raises(StorageError, match="closed file"):
                recorder._journal.flush()
            assert (await recorder.complete(request("b"))).text.startswith("answer")
            for _ in range(more):
                with pytest.raises(StorageError, match="cannot write"):
                    await recorder.complete(request("c"))
        finally:
            await recorder.close()

    asyncio.run(main(more=1))
    assert len(asked) == 2, "nothing more is asked"
    with pytest.raises(StorageError, match="cannot write"):
        asyncio.run(main(more=0))  # a run that needs no further call does not end as if all were recorded


def test_wrappers_stand_for_what_they_wrap(tmp_path: Path) -> None:
    inner = Mock(model="m")
    engine = Limiter(Recorder(Cache(inner, tmp_path / "c"), tmp_path / "r"), 2)
    assert engine.model == "m"
    assert engine.describe() == inner.describe()
    talk(engine, [request("a"), request("a")])
    assert engine.report() == {"cache_hits": 1, "cache_misses": 1}
