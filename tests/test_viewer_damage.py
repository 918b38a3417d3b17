"""`harness view` over runs that someone else wrote, broke or doctored: each is named, and none hides another."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import storage
from tests.helpers.journals import as_killed, sealed
from tests.helpers.toy import TOY, run
from tests.test_viewer_server import get, serving

Dice = TOY.load("engines", "dice")


def rewritten(journal: Path, change: Callable[[storage.Line], Any]) -> None:
    """Every line after `change`, with the right checksums."""
    lines = [line for _, line in storage.lines(journal)]
    for line in lines:
        change(line)
    journal.write_bytes(sealed(*lines))


def far(line: storage.Line) -> None:
    """A batch that SQLite has no number for."""
    line["b"] = 2**70


def many(line: storage.Line) -> None:
    """Sums over episodes that SQLite has no number for."""
    for call in line.get("calls", ()):
        call["input_tokens"] = 2**53 - 1


def textless(line: storage.Line) -> None:
    for call in line.get("calls", ()):
        call["text"] = 5


def factless(line: storage.Line) -> None:
    if "outcome" in line:
        del line["outcome"]["facts"]


def nested(line: storage.Line) -> None:
    value: Any = 0
    for _ in range(900):
        value = [value]
    if "labels" in line:
        line["labels"]["deep"] = value


def no_numbers(line: storage.Line) -> None:
    if "numbers" in line:
        line["numbers"]["agreed"] = line["labels"]["odd"] = float("nan")


@pytest.mark.parametrize("change", [far, many, textless, factless, nested, no_numbers])
def test_sealed_lines_of_strange_values_take_nothing_down(tmp_path: Path, change: Callable[[Any], Any]) -> None:
    run(tmp_path / "good", Dice())
    run(tmp_path / "bad", Dice())
    rewritten(tmp_path / "bad" / "journal.jsonl", change)
    (tmp_path / "bad" / "scores.jsonl").unlink()
    as_killed(tmp_path / "bad")
    with serving(tmp_path) as client:
        assert [line["name"] for line in get(client, "")["runs"]] == ["bad", "good"]
        shown = get(client, "/bad")
        is_damage = change not in (many, nested, no_numbers)
        assert bool(shown["damage"]) == is_damage
        for row in get(client, "/bad/episodes")["episodes"]:
            assert get(client, "/bad/episode", episode=row["id"])["id"] == row["id"]
        assert get(client, "/bad/search", q="a")["hits"] is not None
        assert get(client, "/good/episodes")["total"] == 8


def test_pipes_in_a_run_do_not_wait_for_a_writer(tmp_path: Path) -> None:
    for name in ("journal.jsonl", "scores.jsonl"):
        run(tmp_path / name)
        (tmp_path / name / name).unlink()
        os.mkfifo(tmp_path / name / name)
    with serving(tmp_path) as client:
        assert len(get(client, "")["runs"]) == 2
        for name in ("journal.jsonl", "scores.jsonl"):
            answer = client.get(f"/api/runs/{name}/episodes")
            assert answer.status_code == 400 and "it is not a file" in answer.json()["error"]
            assert "index.sqlite" not in answer.json()["error"]
