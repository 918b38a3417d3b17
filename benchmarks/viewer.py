"""The viewer part of `python benchmarks/run.py`: a run of 100,000 episodes, opened with `harness view`.

A small run is played with the mock engine; its episodes are then repeated, 256 of them open at a time, as a large run
would have written them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

from harness.engines.mock import Mock
from harness.storage import sealed

Row = dict[str, object]
_OPEN = 256  # episodes at a time
_REPEATS = 20  # played for real


def look(smoke: bool) -> list[Row]:
    """Seconds until each page of the viewer is there, and the memory that it took."""
    episodes = 1_000 if smoke else 100_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        size = large_run(folder, episodes)
        command = [sys.executable, "-m", "harness", "view", str(folder), "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as viewer:
            try:
                assert viewer.stdout is not None
                url = viewer.stdout.readline().rpartition(": ")[2].strip()
                rows = [{"what": f"journal of {episodes:,} episodes, {20 * episodes:,} moves", "MB": round(size / 1e6)}]
                rows += _pages(f"{url}api/runs/run", episodes, viewer.pid)
                rows.append({"what": "peak memory, server", "MB": _peak(viewer.pid)})
                largest = max(map(_peak, _children(viewer.pid)))
                rows.append({"what": "peak memory, process of transcripts", "MB": largest})
            finally:
                viewer.terminate()
    return rows


def _pages(run: str, episodes: int, pid: int) -> list[Row]:
    results = _row("what needs no index: record, tables", _timed(f"{run}/results"))
    began, before = time.perf_counter(), _cpu(pid)
    while _get(f"{run}/episodes?limit=50") is None:
        time.sleep(0.05)  # still indexing
    seconds = time.perf_counter() - began
    rows = [results, {**_row("index, once", seconds), "CPU s": round(_cpu(pid) - before, 1)}]
    for what, path in {
        "first page of episodes": "/episodes?limit=50",
        "the run: labels, counts, conditions": "",
        "last page": f"/episodes?limit=50&offset={episodes - 50}",
        "filter by label and outcome": "/episodes?limit=50&label.repeat=3&outcome=unsolved",
        "sort by a metric": "/episodes?limit=50&sort=numbers.score&desc=1",
        "search in ids, answers, errors": "/episodes?limit=50&q=small_world-4-0/77",
        "search in what was said, 50 hits": "/search?q=smaller+value&limit=50",
        "search in what was said, none": "/search?q=nobody+wrote+this",
    }.items():
        rows.append(_row(what, _timed(run + path)))
    [one, *others] = (_get(f"{run}/episodes?limit=9&offset={episodes // 2}") or {})["episodes"]
    rows.append(_row("first episode of the run", _timed(f"{run}/episode?episode={quote(one['id'], safe='')}")))
    times = [_timed(f"{run}/episode?episode={quote(other['id'], safe='')}") for other in others]
    return [*rows, _row("an episode, slowest of eight", max(times))]


def _row(what: str, seconds: float) -> Row:
    return {"what": what, "s": round(seconds, 3)}


def _timed(url: str) -> float:
    began = time.perf_counter()
    _get(url)
    return time.perf_counter() - began


def _get(url: str) -> Any:
    """What a URL gives; None while the run is being indexed."""
    try:
        with urlopen(url) as answer:
            return json.load(answer)
    except HTTPError as error:
        if error.code != 503:
            raise
        return None


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def _cpu(pid: int) -> float:
    """Seconds of CPU time that a process has had."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _peak(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return round(int(status.partition("VmHWM:")[2].split()[0]) / 1000)


def large_run(folder: Path, episodes: int) -> int:
    """Write a run of that many episodes of 20 moves; returns the bytes of its journal."""
    import harness

    text = "Let me think about it. " * 10 + '{"%s": "I propose 0, because it is the smaller value."}'
    spec: dict[str, Any] = {
        "name": "large",
        "extends": "agentsnet",
        "task": {"graphs": "small_world", "size": 4},
        "protocol": {"rounds": 4, "parse_retries": 0},
        "matrix": {"problem": ["consensus"], "graphs": None, "size": None},
        "repeats": _REPEATS,
        "limit": 1,
        "tables": [],
    }
    harness.evaluate(spec, Mock(text=text), output_path=folder)
    for name in ("run.json", "spec.yaml"):
        path = folder / name
        content = path.read_text().replace(f'"repeats": {_REPEATS}', f'"repeats": {episodes}')
        path.write_text(content.replace(f"repeats: {_REPEATS}", f"repeats: {episodes}"))
    record = json.loads((folder / "run.json").read_text())
    del record["journals"]
    record["planned"] = episodes
    (folder / "run.json").write_text(json.dumps(record))
    played: dict[str, list[dict[str, Any]]] = {}
    for line in map(json.loads, (folder / "journal.jsonl").read_text().splitlines()):
        del line["crc"]
        played.setdefault(line["e"], []).append(line)
    scores = list(map(json.loads, (folder / "scores.jsonl").read_text().splitlines()))
    with (folder / "journal.jsonl").open("wb") as journal:
        for line in _interleaved(list(played.values()), episodes):
            journal.write(sealed(json.dumps(line, separators=(",", ":")).encode()))
        size = journal.tell()
    with (folder / "scores.jsonl").open("w") as file:
        for i in range(episodes):
            score = scores[i % len(scores)]
            file.write(json.dumps({**score, "id": f"{score['id'].rpartition('/')[0]}/{i}"}) + "\n")
    return size


def _interleaved(played: list[list[dict[str, Any]]], episodes: int) -> Iterator[dict[str, Any]]:
    """All lines of episodes that are open side by side: the n-th line of each, then the next one of each."""
    for first in range(0, episodes, _OPEN):
        numbers = range(first, min(first + _OPEN, episodes))
        for at in range(max(map(len, played))):
            for i in numbers:
                lines = played[i % len(played)]
                if at < len(lines):
                    changed = {"e": f"{lines[at]['e'].rpartition('/')[0]}/{i}"}
                    yield {**lines[at], **changed, **({"repeat": i} if "repeat" in lines[at] else {})}
