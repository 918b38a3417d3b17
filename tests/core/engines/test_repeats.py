"""An engine that is to be deterministic is asked a sample of a run's requests again."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness.api import Request
from harness.api.errors import RequestError
from harness.engines.gate import Gate
from harness.engines.mock import Mock
from harness.engines.repeats import SAMPLE, Repeats
from tests.conftest import request

QUESTIONS = {"name": "sums", "task": {"use": "arithmetic", "size": 20, "terms": 2}, "protocol": "single"}


class Deterministic(Mock):
    deterministic = True


def play(folder: Path, answer: Callable[[Request, int], str], engine: type[Mock] = Deterministic) -> Any:
    """The report of an engine whose replies may depend on how often the same was asked before; and how often it was."""
    times: Counter[str] = Counter()

    def reply(asked: Request) -> str:
        times[asked.id] += 1
        return answer(asked, times[asked.id])

    harness.evaluate(QUESTIONS, engine(function=reply), output_path=folder)
    record = json.loads((folder / "run.json").read_text("utf-8"))
    assert record["status"] == "finished"
    return record["engines"]["model"], times


def test_a_sample_is_asked_twice_and_counts_nowhere(tmp_path: Path) -> None:
    report, times = play(tmp_path / "run", lambda asked, time: f"Answer: {asked.seed}")
    assert report["asked_again"] == {"asked": SAMPLE, "equal": SAMPLE}
    assert sorted(times.values()) == [1] * (20 - SAMPLE) + [2] * SAMPLE
    lines = map(json.loads, (tmp_path / "run" / "journal.jsonl").read_text("utf-8").splitlines())
    assert sum(line["k"] == "move" for line in lines) == 20


def test_other_replies_are_recorded_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "harness"):
        report, _ = play(tmp_path / "run", lambda asked, time: f"Answer: {time if asked.seed % 2 else 1}")
    again = report["asked_again"]
    assert again["asked"] == SAMPLE and 0 < again["equal"] < SAMPLE
    assert again["different"][0]["first"] == "Answer: 1" and again["different"][0]["again"] == "Answer: 2"
    assert len(again["different"]) == min(3, SAMPLE - again["equal"])
    said = f"deterministic: mock: 16 requests asked again, {again['equal']} of the replies are the same as before"
    assert (said, "WARNING") in [(entry.message, entry.levelname) for entry in caplog.records]


def test_a_failure_the_second_time_fails_no_run(tmp_path: Path) -> None:
    def answer(asked: Request, time: int) -> str:
        if time > 1:
            raise RequestError("no")
        return "Answer: 1"

    report, _ = play(tmp_path / "run", answer)
    assert report["asked_again"] == {"asked": SAMPLE, "equal": 0, "failed": SAMPLE}


def test_engines_of_which_it_is_not_asked_are_asked_once(tmp_path: Path) -> None:
    report, times = play(tmp_path / "run", lambda asked, time: "Answer: 1", Mock)
    assert "asked_again" not in report and set(times.values()) == {1}


@given(st.permutations(range(30)))
def test_the_sample_does_not_depend_on_the_order_and_keeps_what_was_asked(order: list[int]) -> None:
    async def sample(numbers: list[int]) -> list[tuple[str, int]]:
        asked: list[tuple[str, int]] = []

        def reply(again: Request) -> str:
            asked.append((again.id, len(again.thread.messages)))
            return "fine"

        repeats = Repeats(Gate(Mock(function=reply)))
        for number in numbers:
            one = request("?", key=number)
            await repeats.complete(one)
            one.thread.add("assistant", "fine")
        asked.clear()
        await repeats.ask_again()
        assert repeats.report()["asked_again"] == {"asked": SAMPLE, "equal": SAMPLE}
        return asked

    assert asyncio.run(sample(order)) == asyncio.run(sample(list(range(30))))
