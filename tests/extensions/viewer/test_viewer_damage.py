"""`harness view` over runs that someone else wrote, broke or doctored: each is named, and none hides another."""

import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from harness import storage
from harness.extensions.viewer.run_index import ClosedIndexError, EpisodeQuery, RunIndex
from tests.helpers.journals import as_killed, sealed
from tests.helpers.toy import TOY, run
from tests.helpers.viewing import get, serving

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


@pytest.mark.sampled(1)
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


def test_what_is_not_ours_to_open_does_not_hide_the_rest(tmp_path: Path) -> None:
    run(tmp_path / "good")
    run(tmp_path / "odd")
    (tmp_path / "odd" / "scores.jsonl").unlink()
    (tmp_path / "odd" / "scores.jsonl").symlink_to("scores.jsonl")  # opening it fails, for root as well
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "shut").mkdir(mode=0)
    run(tmp_path / "long")
    record = json.loads((tmp_path / "long" / "run.json").read_text())
    record["journals"] = {"x" * 300: 1}  # a name that no disk takes
    (tmp_path / "long" / "run.json").write_text(json.dumps(record))
    with serving(tmp_path) as client:
        lines = {line["name"]: line for line in get(client, "")["runs"]}
        assert lines.keys() == {"good", "long", "odd"} and lines["good"]["problem"] is None
        assert lines["long"]["status"] == "damaged" and "File name too long" in lines["long"]["problem"]


def _open_below(folder: Path) -> list[str]:
    """The open files below `folder`: other tests of this process may still let go of theirs."""
    files = []
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the descriptor of this very listing
            files.append(str(link.readlink()))
    return sorted(file for file in files if file.startswith(f"{folder}/"))


@pytest.mark.slow
def test_a_list_of_stopped_runs_keeps_no_file_open(tmp_path: Path) -> None:
    run(tmp_path / "r0")
    (tmp_path / "r0" / "scores.jsonl").unlink()
    as_killed(tmp_path / "r0")
    for i in range(1, 20):
        shutil.copytree(tmp_path / "r0", tmp_path / f"r{i}")
    with serving(tmp_path) as client:
        before = _open_below(tmp_path)
        for _ in range(2):
            assert {line["episodes"] for line in get(client, "")["runs"]} == {8}
            assert _open_below(tmp_path) == before
        with ThreadPoolExecutor(8) as pool:  # on more than stay open: one request closes what another one uses
            shown = pool.map(lambda i: get(client, f"/r{i % 20}/episodes")["total"], range(100))
            assert set(shown) == {8}


def test_a_closed_index_says_so(tmp_path: Path) -> None:
    run(tmp_path / "r")
    index = RunIndex(tmp_path / "r")
    index.close()
    for ask in (index.update, index.counts, lambda: index.page(EpisodeQuery())):
        with pytest.raises(ClosedIndexError):
            ask()


@pytest.mark.slow
def test_scores_that_were_measured_again_are_shown(tmp_path: Path) -> None:
    run(tmp_path / "r", Dice())
    scores = tmp_path / "r" / "scores.jsonl"
    with serving(tmp_path) as client:
        name = get(client, "/r/episodes")["episodes"][0]["id"]
        assert get(client, "/r/episode", episode=name)["numbers"].get("again") is None
        lines = [json.loads(line) for line in scores.read_text().splitlines()]
        for line in lines:
            line["numbers"]["again"] = 0.25
        scores.write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert get(client, "/r/episode", episode=name)["numbers"]["again"] == 0.25
