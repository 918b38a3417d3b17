"""The log of requests, and the engine that answers from it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.api import Completion, Engine, Request, Thread, derive_seed
from harness.api.errors import EngineFatalError, RequestError, StorageError
from harness.engines.gate import Gate, Shared
from harness.engines.mock import Mock
from harness.engines.replay import Replay
from harness.engines.request_log import RequestLog
from tests.conftest import request
from tests.core.engines.test_cache import counting, talk


@contextlib.contextmanager
def logged(engine: Engine, file: Path) -> Iterator[Gate]:
    """The engine behind a gate that logs its calls."""
    with contextlib.closing(RequestLog(file)) as log:
        yield Gate(engine, shared=Shared(log=log))


def test_a_recording_answers_like_the_engine_did(tmp_path: Path) -> None:
    def answer(asked: Request) -> Completion:
        if asked.id.endswith("2/0"):
            raise RequestError("refused")
        return Completion(asked.thread.messages[-1]["content"].upper(), reasoning="hm", output_tokens=1)

    async def play(engine: Engine) -> list[Any]:
        await engine.start()
        results: list[Any] = []
        for agent in ("Alice", "Bob"):
            thread = Thread()
            for turn in range(4):
                thread.add("user", f"{agent} {turn}")
                try:
                    results.append(await engine.complete(Request(f"e/{agent}/{turn}/0", thread, {"top_p": 0.5}, turn)))
                    thread.add("assistant", results[-1].text)
                except RequestError as error:
                    results.append(str(error))
        await engine.close()
        return results

    file = tmp_path / "calls.jsonl"
    with logged(Mock(function=answer, model="m"), file) as engine:
        first = asyncio.run(play(engine))
    replay = Replay(path=str(file))
    assert asyncio.run(play(replay)) == first
    assert "refused" in first and replay.model == "m"
    with pytest.raises(EngineFatalError):
        asyncio.run(replay.complete(request("never asked")))


def test_every_message_is_written_once_and_threads_can_be_put_together_again(tmp_path: Path) -> None:
    threads = [Thread(), Thread()]
    requests: list[Any] = []

    async def main() -> None:
        await engine.start()
        for turn in range(3):
            for number, thread in enumerate(threads):
                thread.add("user", f"{number}: turn {turn}")
                instance = Request(f"e/{number}/{turn}/0", thread, {"top_k": 3}, derive_seed(turn))
                requests.append(instance)
                await engine.complete(instance)
                thread.add("assistant", "fine")
        await engine.close()

    with logged(Mock(text="fine"), tmp_path / "r") as engine:
        asyncio.run(main())
    rows = [json.loads(line) for line in (tmp_path / "r").read_text().splitlines()]
    assert [r["id"] for r in rows] == [r.id for r in requests]
    assert rows[0]["sampling"] == {"top_k": 3} and rows[0]["seed"] == derive_seed(0)
    again: dict[int, list[Any]] = {}
    for row in rows:
        report = again.setdefault(row["thread"], [])
        assert len(report) == row["start"]
        report += row["messages"]
    assert list(again.values()) == [t.messages[:-1] for t in threads]


@pytest.mark.parametrize("torn", ['{"id": "e/s/9', '{"id": "' + "x" * 200_000])
def test_a_recording_goes_on_after_a_crash(tmp_path: Path, torn: str) -> None:
    file = tmp_path / "calls.jsonl"
    with logged(Mock(text="one"), file) as engine:
        talk(engine, [request("a", key=1)])
    with file.open("a") as broken:
        broken.write(torn)
    with logged(Mock(text="two"), file) as engine:
        talk(engine, [request("a", key=2)])
    replay = Replay(path=str(file))
    assert talk(replay, [request("a", key=1), request("a", key=2)]) == ["one", "two"]


def test_an_empty_or_wholly_torn_recording_starts_again(tmp_path: Path) -> None:
    for content in ("", '{"id'):
        (tmp_path / "r").write_text(content)
        with logged(Mock(text="one"), tmp_path / "r") as engine:
            talk(engine, [request("a")])
        assert len((tmp_path / "r").read_text().splitlines()) == 1


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        RequestLog(tmp_path / "file" / "r")


def test_no_answer_is_lost_where_it_cannot_be_recorded(tmp_path: Path) -> None:
    engine, requests = counting()

    async def main(more: int) -> None:
        log = RequestLog(tmp_path / "r")
        gate = Gate(engine, shared=Shared(log=log))
        await gate.start()
        log._journal._file.close()  # the disk is gone
        try:
            assert (await gate.complete(request("a"))).text.startswith("answer")
            with pytest.raises(StorageError, match="closed file"):
                log._journal.flush()
            assert (await gate.complete(request("b"))).text.startswith("answer")
            for _ in range(more):
                with pytest.raises(StorageError, match="cannot write"):
                    await gate.complete(request("c"))
        finally:
            await gate.close()
            log.close()

    asyncio.run(main(more=1))
    assert len(requests) == 2, "nothing more is asked"
    with pytest.raises(StorageError, match="cannot write"):
        asyncio.run(main(more=0))  # a run that needs no further call does not end as if all were recorded
