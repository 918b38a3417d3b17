"""MAS-Bench's part of `python benchmarks/run.py`: the whole grid, and a hundred agents with a hundred numbers each."""

from __future__ import annotations

import tempfile
from collections.abc import Callable

Row = dict[str, object]
Measured = Callable[[list[str]], tuple[float, float, float, str]]


def teams(measured: Measured, smoke: bool) -> list[Row]:
    """Perfect teams: all 900 episodes, and the largest instance on every backend."""
    small = ["--set", "matrix.agents=[1, 3]"] if smoke else []
    rows = [_team(measured, f"{360 if smoke else 900} episodes", small)]
    large = ["matrix.agents=[100]", "matrix.items=[100]", "matrix.family=[random]", "matrix.condition=[Base]"]
    for backend in ("Broadcasting", "P2P", "Shared K-V"):
        more = [*large, f"matrix.backend=[{backend}]"]
        overrides = [word for one in more for word in ("--set", one)]
        rows.append(_team(measured, f"100 agents × 100 numbers, {backend}", overrides))
    return rows


def _team(measured: Measured, what: str, more: list[str]) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        base = ["-m", "harness", "eval", "--spec", "mas_bench", "--quiet", "--output_path", f"{folder}/r"]
        wall, cpu, peak, _ = measured([*base, *more])
    return {"what": what, "wall s": round(wall, 1), "CPU s": round(cpu, 1), "peak MiB": round(peak)}
