"""`Completion.began`: when each call was made, beside what it is."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import storage
from harness.api import Completion, Request
from harness.config import building
from harness.engines.mock import Mock
from harness.storage import completion_of, fields_of
from tests.helpers.toy import TOY, results, run


def dice(**more: Any) -> Any:
    return building.engine({"use": "dice", **more}, TOY)


def calls(folder: Path) -> list[dict[str, Any]]:
    lines = [line for _, line in storage.lines(folder / "journal.jsonl") if line["k"] == "move"]
    return [call for line in lines for call in line.get("calls", ())]


def test_every_call_that_is_made_says_when(tmp_path: Path) -> None:
    before = time.time()
    run(tmp_path / "r", dice())
    times = [call["began"] for call in calls(tmp_path / "r")]
    assert times and before - 0.001 <= min(times) and max(times) <= time.time()


def test_what_an_engine_waits_for_before_it_measures_is_no_part_of_a_call(tmp_path: Path) -> None:
    """Such as an agent's process, which other turns use meanwhile."""
    starts: list[float] = []

    def model(request: Request) -> Completion:
        begun = time.time()
        while (now := time.time()) < begun + 0.001:
            pass
        starts.append(now)
        return Completion("a", latency=0.0)

    run(tmp_path / "r", Mock(function=model))
    times = sorted(call["began"] for call in calls(tmp_path / "r"))
    assert len(times) == len(starts) > 0
    assert all(began >= start - 1e-6 for began, start in zip(times, sorted(starts), strict=True))


def test_when_a_call_was_made_is_no_part_of_what_it_is(tmp_path: Path) -> None:
    one = Completion("a", began=1.0)
    assert one == replace(one, began=2.0) == Completion("a") and completion_of(fields_of(one)).began == 1.0
    for name in ("one", "two"):
        run(tmp_path / name / "r", dice(latency=0.001))
    assert results(tmp_path / "one" / "r") == results(tmp_path / "two" / "r")


def test_a_call_that_was_made_before_and_elsewhere_has_no_time_here(tmp_path: Path) -> None:
    run(tmp_path / "first", dice(), use_cache=tmp_path / "cache.sqlite")
    run(tmp_path / "cached", dice(), use_cache=tmp_path / "cache.sqlite")
    run(tmp_path / "reused", dice(), reuse=tmp_path / "first")
    for name in ("cached", "reused"):
        there = calls(tmp_path / name)
        assert there and not any("began" in call for call in there)
        assert results(tmp_path / name)["scores.jsonl"] == results(tmp_path / "first")["scores.jsonl"]
