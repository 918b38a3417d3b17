"""The teams of `python benchmarks/run.py`: the cost of a call by the number of seats and of rounds."""

from __future__ import annotations

from typing import Any

from panels import Measured, Row, asked, per_call

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
            unit = "rounds" if graph == "star" else "seats"
            row[f"CPU ms a call, {size} {unit}"] = per_call(measured, work, 1 if smoke else 5)
        rows.append(row)
    return rows


def work_team(graph: str, size: int, episodes: int) -> Row:
    """In a process of its own: CPU seconds and number of calls, imports and set-up left out."""
    solver = {"agents": size, "within": graph, "asks": "answer", "brief": "Solve the problem."}
    dag = {"roles": {"solver": solver, "last": {"brief": "Put together what you read."}}, "edges": ["solver > last"]}
    star = {
        "roles": {"planner": {"brief": "Plan."}, "worker": {"agents": 3, "brief": "Do your part."}},
        "edges": "star",
    }
    parameters: dict[str, Any] = {**star, "rounds": size} if graph == "star" else dag
    return asked({"use": "team", **parameters}, episodes)
