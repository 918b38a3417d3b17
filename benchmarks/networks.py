"""Network tasks in YAML: what it takes to draw a case, to word every agent's brief, and to grade its answers.

python benchmarks/run.py networks
"""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from harness.api import Case, Outcome
from harness.config import project, resolve, spec

PROBLEMS = {
    "coloring": {"graphs": "[delaunay]"},
    "consensus": {"graphs": "[delaunay]"},
    "leader_election": {"graphs": "[delaunay]"},
    "matching": {"graphs": "[delaunay]"},
    "vertex_cover": {"graphs": "[delaunay]"},
    "dominating_set": {"graphs": "[delaunay]"},
    "two_hop_coloring": {"graphs": "[small_world]"},
    "balanced_partition": {},
    "frequency_assignment": {"graphs": "[delaunay]"},
    "minority_veto": {"graphs": "[delaunay]"},
    "shared_rooms": {"rooms": "[6]"},
}
IN_THE_EXPRESSION = "sum(1 for u, v in edges if answer[u] != answer[v]) / len(edges)"


def gradings(smoke: bool) -> list[dict[str, object]]:
    """Milliseconds of CPU time for networks of one size; Python's own tasks and a loop in the expression beside it."""
    size, rows = 100 if smoke else 1_000, []
    for problem, matrix in PROBLEMS.items():
        changes = [f"matrix.{name}={value}" for name, value in {**matrix, "size": f"[{size}]"}.items()]
        if problem == "balanced_partition":
            parameters = {"l": 2, "k": "${half}", "p_in": 16 / size, "p_out": 4 / size}
            changes = [f"matrix.half=[{size // 2}]", f"task.graphs.parameters={json.dumps(parameters)}"]
        declared = _task(f"networks/{problem}", changes)
        rows.append(_row(problem, declared, smoke))
        if problem == "coloring":
            looped = [*changes, "task.constraints.separate.every=network"]
            looped.append(f'task.constraints.separate.holds="{IN_THE_EXPRESSION}"')
            rows.append(_row("coloring, the loop in the expression", _task(f"networks/{problem}", looped), smoke))
            builtin = project.builtin().load("tasks", f"agentsnet/{problem}")
            rows.append(_row("coloring in Python", builtin(graphs="delaunay", size=size, source="seeded"), smoke))
    return rows


def _task(name: str, changes: list[str]) -> Any:
    builtin = project.builtin()
    return resolve.plan(spec.load(name, builtin, changes), builtin).conditions[0].task


def _row(name: str, task: Any, smoke: bool) -> dict[str, object]:
    cases = [_timed(lambda: next(iter(task.cases(1, 0)))) for _ in range(1 if smoke else 3)]
    case: Case = cases[0][1]
    rng, options = random.Random(0), {agent: task.reply(case, agent).options for agent in case.agents}
    outcomes = [Outcome({a: rng.choice(many) for a, many in options.items()}) for _ in range(2 if smoke else 20)]
    gradings = [_timed(lambda outcome=outcome: task.grade(case, outcome))[0] for outcome in outcomes]  # type: ignore[misc]
    contexts = _timed(lambda: [task.context(case, agent) for agent in case.agents])[0]
    edges = sum(map(len, (case.topology or {}).values())) // 2
    return {
        "problem": name,
        "agents": len(case.agents),
        "edges": edges,
        "a case, ms": round(statistics.median(ms for ms, _ in cases), 1),
        "all contexts, ms": round(contexts, 1),
        "a grading, ms": round(statistics.median(gradings), 1),
    }


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return 1_000 * (time.process_time() - start), result
