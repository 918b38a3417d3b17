"""Parts of `python benchmarks/run.py`: a page about a run of 10,000 episodes, one chart of it; a board of 100 runs."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from viewer import large_run

Row = dict[str, object]
Measured = Callable[[list[str]], tuple[float, float, float, str]]
_EPISODES = 600


def pages(measured: Measured, smoke: bool) -> list[Row]:
    """From the command to the file, with the start of the process."""
    return [row for episodes in ((500,) if smoke else (1_000, 10_000, 100_000)) for row in _of(measured, episodes)]


def _of(measured: Measured, episodes: int) -> list[Row]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        run, page, chart = (str(Path(name) / part) for part in ("run", "report.html", "failures.svg"))
        large_run(Path(run), episodes)
        for what, command in (
            ("report", ["report", run, "--format", "html", "-o", page]),
            ("plot", ["plot", run, "--kind", "failures", "-o", chart]),
        ):
            wall, cpu, peak, _ = measured(["-m", "harness", *command])
            row: Row = {"command": what, "episodes": episodes, "moves": 20 * episodes}
            rows.append({**row, "wall s": round(wall, 1), "CPU s": round(cpu, 1), "peak MiB": round(peak)})
    return rows


def boards(measured: Measured, smoke: bool) -> list[Row]:
    """Runs of 600 episodes each, two of a case, side by side; every pair of models is tested."""
    rows: list[Row] = []
    for count in (5,) if smoke else (10, 100):
        with tempfile.TemporaryDirectory() as name:
            first, runs = Path(name) / "first", Path(name) / "runs"
            large_run(first, _EPISODES)
            for i in range(count):
                _another(first, runs / f"{i:03}", i / count)
            wall, cpu, peak, _ = measured(["-m", "harness", "leaderboard", str(runs)])
        row: Row = {"runs": count, "episodes each": _EPISODES, "pairs": count * (count - 1) // 2}
        rows.append({**row, "wall s": round(wall, 1), "CPU s": round(cpu, 1), "peak MiB": round(peak)})
    return rows


def _another(first: Path, folder: Path, skill: float) -> None:
    """A run of another model with the same cases: it solves 30 % of them and more, by its skill."""
    folder.mkdir(parents=True)
    shutil.copy(first / "spec.yaml", folder)
    model, luck = f"model-{folder.name}", random.Random(folder.name)
    record = json.loads((first / "run.json").read_text())
    start = f"2026-01-01T00:00:00.{folder.name}000+00:00"
    (folder / "run.json").write_text(json.dumps({**record, "model": model, "run": folder.name, "start": start}))
    with (folder / "scores.jsonl").open("w") as file:
        for i, line in enumerate((first / "scores.jsonl").read_text().splitlines()):
            score = json.loads(line)
            score["id"] = f"{score['condition']}/small_world-4-{i // 2}/{i % 2}"
            score["labels"] |= {"model": model, "sample": i // 2}
            score["numbers"]["solved"] = float(luck.random() < 0.3 + 0.3 * skill)
            file.write(json.dumps(score) + "\n")
