"""Sharded tasks in YAML: what it takes to draw instances and to work out their right answers.

python benchmarks/run.py sharded
"""

from __future__ import annotations

import time
from dataclasses import replace

from harness.config import project, resolve, spec
from harness.extensions.networks.sharded import ShardedTask

AGENTS, ITEMS = 10, 100


def instances(smoke: bool) -> list[dict[str, object]]:
    """CPU seconds for instances of 1,000 items of some of SILO-Bench's tasks, in YAML and in Python."""
    builtin, number, rows = project.builtin(), 200 if smoke else 10_000, []
    loaded = spec.load("sharded/silo", builtin, ["matrix.agents=[2]", "matrix.protocol=[P2P]"])
    for condition in resolve.plan(loaded, builtin).conditions:
        name = str(condition.labels["problem"])
        declared, python = condition.task, builtin.load("tasks", f"silo/{name}")()
        assert isinstance(declared, ShardedTask) and isinstance(python, ShardedTask)
        yaml_s, python_s = (_seconds(task, number) for task in (declared, python))
        rows.append(
            {
                "task": name,
                "instances": number,
                "items": AGENTS * ITEMS,
                "YAML, CPU s": round(yaml_s, 2),
                "Python, CPU s": round(python_s, 2),
                "YAML, ms an instance": round(1_000 * yaml_s / number, 2),
            }
        )
    return rows


def _seconds(task: ShardedTask, number: int) -> float:
    sized = replace(task, agents=AGENTS, items=ITEMS, instances=number)
    began = time.process_time()
    for _ in sized.cases(None, 0):
        pass
    return time.process_time() - began
