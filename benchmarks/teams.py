"""The teams of `python benchmarks/run.py`: the cost of a call by the number of seats and of rounds."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Row = dict[str, object]
Measured = Callable[[list[str]], tuple[float, float, float, str]]
GRAPHS = ("chain", "layered", "mesh")
"""Graphs of one role, in which each seat acts once."""


def seats(measured: Measured, file: str, smoke: bool) -> list[Row]:
    """Graphs of 8 and 64 seats, and a star of four for 10 and 40 rounds, played by the mock engine."""
    rows: list[Row] = []
    for graph in (*GRAPHS, "star"):
        sizes = (10, 40) if graph == "star" else (8, 64)
        row: Row = {"team": "star of 4 seats" if graph == "star" else graph}
        for size in sizes:
            work = [file, "--work", f"teams:{graph}:{size}:{2 if smoke else 800 // size}"]
            out = [json.loads(measured(work)[3]) for _ in range(1 if smoke else 5)]
            unit = "rounds" if graph == "star" else "seats"
            row[f"CPU ms a call, {size} {unit}"] = round(
                statistics.median(1000 * o["cpu"] / o["calls"] for o in out), 3
            )
        rows.append(row)
    return rows


def work_team(graph: str, size: int, episodes: int) -> Row:
    """In a process of its own: CPU seconds and number of calls, imports and set-up left out."""
    import harness
    from harness.engine_api import Request
    from harness.engines.mock import Mock

    count = 0

    def answer(request: Request) -> str:
        nonlocal count
        count += 1
        return f"Let me think about it. I add the terms once more, one by one.\nThe answer is {count % 7}."

    solver = {"agents": size, "within": graph, "asks": "answer", "brief": "Solve the problem."}
    dag = {"roles": {"solver": solver, "last": {"brief": "Put together what you read."}}, "edges": ["solver > last"]}
    star = {
        "roles": {"planner": {"brief": "Plan."}, "worker": {"agents": 3, "brief": "Do your part."}},
        "edges": "star",
    }
    parameters: dict[str, Any] = {**star, "rounds": size} if graph == "star" else dag
    spec = {
        "name": "teams",
        "task": {"use": "arithmetic", "size": episodes, "terms": 4},
        "protocol": {"use": "team", **parameters},
        "prompts": "ensembles/standard",
        "metrics": ["score"],
    }
    with tempfile.TemporaryDirectory() as folder:
        harness.evaluate(spec, Mock(function=answer), limit=1, output_path=Path(folder) / "warm")
        count, began = 0, time.process_time()
        harness.evaluate(spec, Mock(function=answer), output_path=Path(folder) / "run")
        return {"cpu": time.process_time() - began, "calls": count}
