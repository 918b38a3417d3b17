"""The panels of `python benchmarks/run.py`: methods that combine answers, and the cost of a call in discussions."""

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

METHODS: dict[str, dict[str, Any]] = {
    "vote": {"use": "vote"},
    "darkforest": {"use": "darkforest", "correlated": [["Agent-1", "Agent-2"]]},
    "debate": {"use": "debate"},
    "reconcile": {"use": "reconcile"},
    "mixture_of_agents": {"use": "mixture_of_agents"},
    "graph_of_agents": {"use": "graph_of_agents"},
}
SHARED = {"agents": 3, "confidence": "line"}


def methods(measured: Measured, smoke: bool) -> list[Row]:
    """10,000 questions for the vote and for DarkForest, 2,000 for the others."""
    return [
        _run(measured, name, protocol, 100 if smoke else 10_000 if name in ("vote", "darkforest") else 2_000)
        for name, protocol in METHODS.items()
    ]


def _run(measured: Measured, name: str, protocol: dict[str, Any], count: int) -> Row:
    spec = {
        "name": "panels",
        "task": {"use": "arithmetic", "size": count, "terms": 4},
        "protocol": {**protocol, **SHARED},
        "prompts": "panels/standard",
        "baseline": {"use": "simulated", "accuracy": 0.6, "malformed": 0.1, "unstated": 0.1},
        "metrics": ["score", {"use": "grade", "of": "available", "name": "available"}],
        "tables": [{"title": "Panels", "rows": "model", "metrics": ["score", "available"], "aggregate": "pooled"}],
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "spec.yaml"
        file.write_text(json.dumps(spec))
        run = ["--spec", str(file), "--output_path", str(Path(folder) / "r")]
        wall, cpu, peak, _ = measured(["-m", "harness", "eval", "--quiet", *run])
    return {
        "method": name,
        "questions": count,
        "wall s": round(wall, 1),
        "CPU s": round(cpu, 1),
        "peak MiB": round(peak),
    }


DISCUSSIONS: dict[str, dict[str, Any]] = {
    "all, one conversation": {},
    "all, last round, named": {"visible": 1, "identity": "named"},
    "ring, agree, one after another": {"topology": "ring", "style": "agree", "order": "round_robin"},
}
"""Ten seats each; who hears whom, and how."""


def discussions(measured: Measured, file: str, smoke: bool) -> list[Row]:
    """The cost of a call in a discussion of ten seats, played by the mock engine, by the number of rounds."""
    rows: list[Row] = []
    for name in DISCUSSIONS:
        row: Row = {"discussion of 10 seats": name}
        for rounds in (3, 10) if smoke else (10, 40):
            work = [file, "--work", f"discussion:{name}:{rounds}:{2 if smoke else 400 // rounds}"]
            row[f"CPU ms a call, {rounds} rounds"] = per_call(measured, work, 1 if smoke else 3)
        rows.append(row)
    return rows


def work_discussion(name: str, rounds: int, episodes: int) -> Row:
    """In a process of its own: CPU seconds and number of calls, imports and set-up left out."""
    return asked({"use": "discussion", "agents": 10, "max_rounds": rounds, **DISCUSSIONS[name]}, episodes)


def asked(protocol: dict[str, Any], episodes: int) -> Row:
    """CPU seconds and calls of so many questions; the mock engine always thinks for two lines, and then answers."""
    import harness
    from harness.api import Request
    from harness.engines.mock import Mock

    count = 0

    def answer(request: Request) -> str:
        nonlocal count
        count += 1
        return f"Let me think about it. I add the terms once more, one by one.\nThe answer is {count % 7}."

    spec = {
        "name": "panels",
        "task": {"use": "arithmetic", "size": episodes, "terms": 4},
        "protocol": protocol,
        "prompts": "panels/standard",
        "metrics": ["score"],
    }
    with tempfile.TemporaryDirectory() as folder:
        harness.evaluate(spec, Mock(function=answer), limit=1, output_path=Path(folder) / "warm")
        count, began = 0, time.process_time()
        harness.evaluate(spec, Mock(function=answer), output_path=Path(folder) / "run")
        return {"cpu": time.process_time() - began, "calls": count}


def per_call(measured: Measured, work: list[str], runs: int) -> float:
    """The median CPU time of a call, in milliseconds."""
    out = [json.loads(measured(work)[3]) for _ in range(runs)]
    return round(statistics.median(1000 * one["cpu"] / one["calls"] for one in out), 3)
