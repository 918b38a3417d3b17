"""Answers from a recording."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.api import Completion, Request, Thread
from harness.api.errors import ContextLengthError, DataError, EngineFatalError, RequestError, SetupError
from harness.engines.replay import Replay
from tests.helpers.journals import sealed
from tests.helpers.samples import examples


def move(episode: str, agent: str, turn: int, *texts: str, **more: Any) -> dict[str, Any]:
    calls = [{"text": t, "finish_reason": "stop", "input_tokens": 3} for t in texts]
    return {"k": "move", "e": episode, "s": agent, "i": turn, "t": "talk", "calls": calls, **more}


def write(path: Path, rows: list[Any], tail: str = "") -> Path:
    whole = sealed(*rows) if path.name.startswith("journal") else "".join(json.dumps(r) + "\n" for r in rows).encode()
    path.write_bytes(whole + tail.encode())
    return path


def ask(engine: Replay, id: str) -> Completion:
    return asyncio.run(engine.complete(Request(id, Thread(), {}, 0)))


def started(path: Path, **fields: Any) -> Replay:
    engine = Replay(path=str(path), **fields)
    asyncio.run(engine.start())
    return engine


def test_every_call_of_a_run_is_answered_by_its_id(tmp_path: Path) -> None:
    rows = [
        {"k": "episode", "e": "c/case/0"},
        move("c/case/0", "Alice", 0, "hm", "yes"),
        move("c/case/0", "Bob", 0, "no"),
        move("c/case/0", "Alice", 1, "fine", made_up_field=1),
        {"k": "move", "e": "c/case/0", "s": "Policy", "i": 0},
    ]
    write(tmp_path / "journal.jsonl", rows, tail='{"k": "move", "e": "c/ca')  # torn by a crash
    engine = started(tmp_path)
    assert ask(engine, "c/case/0/Alice/0/0") == Completion("hm", finish_reason="stop", input_tokens=3)
    assert ask(engine, "c/case/0/Alice/0/1").text == "yes"
    assert ask(engine, "c/case/0/Bob/0/0").text == "no"
    assert ask(engine, "c/case/0/Alice/1/0").text == "fine"
    assert engine.report() == {"recorded_calls": 4}
    assert engine.model == "replay"
    assert started(tmp_path, model="m").model == "m"
    (tmp_path / "run.json").write_text('{"model": "the one that played"}')
    assert started(tmp_path).model == "the one that played"


def test_several_writers_journals_are_one_run(tmp_path: Path) -> None:
    write(tmp_path / "journal-0.jsonl", [move("a", "S", 0, "one")])
    write(tmp_path / "journal-1.jsonl", [move("b", "S", 0, "two")])
    engine = started(tmp_path)
    assert (ask(engine, "a/S/0/0").text, ask(engine, "b/S/0/0").text) == ("one", "two")


def test_what_was_never_asked_is_fatal(tmp_path: Path) -> None:
    engine = started(write(tmp_path / "journal.jsonl", [move("a", "S", 0, "one")]).parent)
    for id in ("a/S/0/1", "a/S/1/0", "b/S/0/0"):
        with pytest.raises(EngineFatalError, match=f"'{id}'.*seed"):
            ask(engine, id)


def test_a_call_that_failed_fails_again(tmp_path: Path) -> None:
    rows = [
        move("a", "S", 0, "hm", error="too long", error_kind="context_length"),
        move("a", "S", 1, error="refused", error_kind="request"),
        move("a", "S", 2, "??", error="no JSON", error_kind="parse"),
    ]
    engine = started(write(tmp_path / "journal.jsonl", rows).parent)
    assert ask(engine, "a/S/0/0").text == "hm"
    with pytest.raises(ContextLengthError, match="too long"):
        ask(engine, "a/S/0/1")
    with pytest.raises(RequestError, match="refused"):
        ask(engine, "a/S/1/0")
    with pytest.raises(EngineFatalError):  # it was not asked again, whatever the reply looked like
        ask(engine, "a/S/2/1")


@pytest.mark.parametrize("there", ["nothing", "an empty folder", "no calls"])
def test_no_recording_is_the_users_mistake(tmp_path: Path, there: str) -> None:
    path = tmp_path / "run"
    if there != "nothing":
        path.mkdir()
    if there == "no calls":
        write(path / "journal.jsonl", [{"k": "move", "e": "a", "s": "S", "i": 0}])
    with pytest.raises(SetupError, match="no recorded"):
        started(path)


def test_a_broken_line_in_the_middle_is_named(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    file.write_bytes(sealed(move("a", "S", 0, "x")) + b"{oops\n" + sealed(move("a", "S", 1, "y")))
    with pytest.raises(DataError, match=r"journal\.jsonl:2:1: not a JSON object"):
        started(tmp_path)


@settings(max_examples=examples(40))
@given(texts=st.lists(st.text(), min_size=1, max_size=4), cut=st.integers(0, 10_000))
def test_cut_anywhere_it_holds_all_whole_lines(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], cut: int
) -> None:
    file = tmp_path_factory.mktemp("run") / "journal.jsonl"
    whole = sealed(*(move("e", "S", i, t) for i, t in enumerate(texts)))
    remaining = whole[: min(cut, len(whole))]
    file.write_bytes(sealed(move("e", "S", 99, "first")) + remaining)
    engine = started(file.parent)
    for i, text in enumerate(texts[: remaining.count(b"\n")]):
        assert ask(engine, f"e/S/{i}/0").text == text
