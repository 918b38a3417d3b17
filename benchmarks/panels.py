"""The panels of `python benchmarks/run.py`: methods that combine answers, with simulated players, start to tables."""

from __future__ import annotations

import json
import tempfile
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
        "prompts": "ensembles/standard",
        "baseline": {"use": "simulated", "accuracy": 0.6, "malformed": 0.1, "unstated": 0.1},
        "metrics": ["score", {"use": "grade", "of": "available", "name": "available"}],
        "tables": [{"title": "Panels", "rows": "model", "cell": ["score", "available"], "aggregate": "pooled"}],
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
