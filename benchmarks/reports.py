"""The report part of `python benchmarks/run.py`: one page about a run of 10,000 episodes, and one chart of it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from viewer import large_run

Row = dict[str, object]
Measured = Callable[[list[str]], tuple[float, float, float, str]]


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
