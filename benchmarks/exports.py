"""The export part of `python benchmarks/run.py`: a run of 10,000 episodes in the form of other tools."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from viewer import large_run

Row = dict[str, object]
Measured = Callable[[list[str]], tuple[float, float, float, str]]


def forms(measured: Measured, smoke: bool) -> list[Row]:
    """From the command to the files, with the start of the process."""
    rows: list[Row] = []
    for episodes in (200,) if smoke else (1_000, 10_000):
        with tempfile.TemporaryDirectory() as name:
            run = Path(name) / "run"
            large_run(run, episodes)
            for form in ("parquet", "csv", "jsonl", "inspect"):
                folder = Path(name) / form
                wall, cpu, peak, _ = measured(["-m", "harness", "export", str(run), "--to", form, "-o", str(folder)])
                size = sum(file.stat().st_size for file in folder.iterdir())
                row: Row = {"form": form, "episodes": episodes, "turns": 20 * episodes, "MB": round(size / 1e6, 1)}
                rows.append({**row, "wall s": round(wall, 1), "CPU s": round(cpu, 1), "peak MiB": round(peak)})
    return rows
