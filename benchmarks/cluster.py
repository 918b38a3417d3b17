"""Several processes, and what a run leaves on the disk: `python benchmarks/run.py cluster` (needs the package ray)."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

Row = dict[str, object]
Measured = Callable[[list[str]], tuple[float, float, float, str]]


def workers(measured: Measured, file: str, smoke: bool) -> list[Row]:
    """AgentsNet's consensus among 8 agents for 10 turns: this process against workers of a local Ray cluster.

    `calls/s` is from the first call of any worker to the last finished episode: starting the cluster is left out, that
    the workers do not start at the same instant is not.
    """
    rows: list[Row] = []
    counts = (0, 2) if smoke else (0, 1, 2, 4)
    # Text of 1,000 characters a call; answers at once, or after 50 ms with 32 in flight a worker.
    for latency, repeats in ((0, 2), (50, 1)) if smoke else ((0, 60), (50, 40)):
        for count in counts:
            out = json.loads(measured([file, "--work", f"cluster:{count}:{repeats}:{latency}"])[3])
            rows.append(
                {
                    "engine": f"mock, {latency} ms",
                    "who": f"{count} workers" if count else "this process",
                    "episodes": out["episodes"],
                    "calls/s": round(out["rate"]),
                    "driver CPU ms an episode": round(1000 * out["cpu"] / out["episodes"], 2) if count else None,
                    "journal bytes a call": round(out["bytes"] / out["calls"]),
                }
            )
    return rows


def work_cluster(count: int, repeats: int, latency: int) -> Row:
    """In a process of its own: one run, with `count` workers or none."""
    import harness
    from harness.api import Request
    from harness.engines.mock import Mock

    results: list[float] = []

    async def answer(request: Request) -> str:
        import asyncio

        if not results:  # the first call of this process
            results.append(time.monotonic())  # of the machine: the same in all its processes
            (marks / str(os.getpid())).write_text(str(results[0]))
        if latency:
            await asyncio.sleep(latency / 1000)
        final = "Final Answer" in request.thread.messages[-1]["content"]
        return "I think. " * 111 + ("### Final Answer ### 0" if final else "{}")

    spec = {
        "name": "one",
        "extends": "agentsnet",
        "task": {"graphs": "small_world", "size": 8},
        "protocol": {"rounds": 9},
        "matrix": {"problem": ["consensus"], "graphs": None, "size": None},
        "metrics": ["solved", "calls"],
        "tables": [],
    }
    times: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        marks = Path(folder) / "marks"
        marks.mkdir()
        executor: dict[str, object] = {"use": "ray", "workers": count} if count else {"use": "local"}
        if count:
            from harness.extensions.ray.ray import package

            package().init(num_cpus=count, include_dashboard=False, log_to_driver=False, object_store_memory=128 << 20)
        began = time.process_time()
        run = harness.evaluate(
            spec,
            Mock(function=answer),
            repeats=repeats,
            max_concurrency=32,
            executor=executor,
            output_path=Path(folder) / "run",
            on_score=lambda score, total: times.append(time.monotonic()) if score else None,
        )
        cpu = time.process_time() - began
        size = sum(file.stat().st_size for file in (Path(folder) / "run").glob("journal*.jsonl"))
        first = min(float(file.read_text()) for file in marks.iterdir())
    calls = sum(cast(int, score.numbers["calls"] or 0) for score in run.scores)
    return {
        "episodes": len(run.scores),
        "calls": calls,
        "rate": calls / (times[-1] - first),
        "cpu": cpu,
        "bytes": size,
    }
