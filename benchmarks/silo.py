"""SILO-Bench's part of `python benchmarks/run.py`: the factorial, a thousand agents, the cost of a call over time."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Row = dict[str, object]
Measured = Callable[[list[str]], tuple[float, float, float, str]]


def teams(measured: Measured, smoke: bool) -> list[Row]:
    """Perfect teams: all 540 episodes of the factorial, and a thousand agents on every channel."""
    small = ["--set", "matrix.agents=[2, 5]"] if smoke else []
    rows = [_team(measured, "540 episodes, plan star" if not smoke else "180 episodes, plan star", "star", small)]
    if not smoke:
        rows.append(_team(measured, "540 episodes, plan all", "all", []))
    thousand = ["--set", "matrix.agents=[1000]", "--set", "matrix.problem=[global_maximum]"]
    for channel in ("P2P", "BP", "SFS"):
        one = ["--set", f"matrix.protocol=[{channel}]"]
        for plan in ("star",) if smoke else ("star", "all"):
            rows.append(_team(measured, f"1,000 agents, {channel}, plan {plan}", plan, [*thousand, *one]))
    return rows


def _team(measured: Measured, what: str, plan: str, more: list[str]) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        base = ["-m", "harness", "eval", "--spec", "silo_bench", "--quiet", "--output_path", f"{folder}/r"]
        wall, cpu, peak, _ = measured([*base, "--set", f"baseline.plan={plan}", *more])
    return {"what": what, "wall s": round(wall, 1), "CPU s": round(cpu, 1), "peak MiB": round(peak)}


def talk(measured: Measured, file: str, smoke: bool) -> list[Row]:
    """Ten agents that say something in every round, played by the mock engine: the cost of a call by length, and by
    whether the actions are texts or calls of tools."""
    rows: list[Row] = []
    for rounds, repeats in ((10, 2), (50, 1)) if smoke else ((10, 20), (100, 2), (400, 1)):
        for tools in (0, 1):
            out = json.loads(measured([file, "--work", f"talk:{rounds}:{repeats}:{tools}"])[3])
            ms = round(1000 * out["cpu"] / out["calls"], 3)
            form = "tools" if tools else "text"
            rows.append({"rounds an episode": rounds, "actions as": form, "calls": out["calls"], "CPU ms a call": ms})
    return rows


def work_talk(rounds: int, repeats: int, tools: int = 0) -> Row:
    """In a process of its own: CPU seconds and number of calls, imports and set-up left out."""
    import harness
    from harness.api import Completion, Request
    from harness.engines.mock import Mock

    count = 0
    text = '<send_message target_id="1">mine is 12</send_message><send_message target_id="2">and yours?</send_message>'
    native = [
        {"id": f"call_{to}", "name": "send_message", "arguments": json.dumps({"target_id": to, "content": said})}
        for to, said in (("1", "mine is 12"), ("2", "and yours?"))
    ]

    def answer(request: Request) -> str | Completion:
        nonlocal count
        count += 1
        return Completion("", tool_calls=native) if request.tools else text

    spec: dict[str, Any] = {
        "name": "talk",
        "extends": "silo_bench",
        "protocol": {"channel": "mailbox", "max_rounds": rounds, "reply_via": "tool_calls" if tools else "text"},
        "task": {"agents": 10},
        "matrix": {"problem": ["global_maximum"], "agents": None, "protocol": None},
        "tables": [],
    }
    with tempfile.TemporaryDirectory() as folder:
        warm = {**spec, "protocol": {**spec["protocol"], "max_rounds": 2}}
        harness.evaluate(warm, Mock(function=answer), repeats=1, output_path=Path(folder) / "warm")
        count, began = 0, time.process_time()
        harness.evaluate(spec, Mock(function=answer), repeats=repeats, output_path=Path(folder) / "run")
        return {"cpu": time.process_time() - began, "calls": count}
