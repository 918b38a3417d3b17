"""Small data sets of the tests' own making, and the tasks over them."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.api import Case, Outcome
from harness.config import project, resolve, spec
from harness.engines.mock import Mock

BUILTIN = project.builtin()
ROOT = Path(__file__).parents[3]


def jsonl(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def task_of(name: str = "dataset_qa", **parameters: Any) -> Any:
    return BUILTIN.load("tasks", name)(**parameters)


def cases(task: Any, limit: int | None = None, seed: int = 0) -> list[Case]:
    return list(task.cases(limit, seed))


def graded(task: Any, case: Case, *answers: Any, group: Any = None, samples: bool = True) -> dict[str, Any]:
    """The grade of these answers as `single` gives them."""
    facts = {"samples": list(answers)} if samples else {}
    parameters = {f"Agent-{i}": answer for i, answer in enumerate(answers)}
    return dict(task.grade(case, Outcome(answers=parameters, group=group, facts=facts)))


def plan_of(task: Mapping[str, Any] | str, folder: Path | None = None, protocol: Any = "single") -> Any:
    """The plan of a spec with this task; raises what `validate` would show."""
    loaded = spec.parse(
        {"name": "x", "task": task, "protocol": protocol, "prompts": "qa/standard", "metrics": ["score"]}, BUILTIN
    )
    return resolve.plan(loaded, BUILTIN, Mock())


def offline(code: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Code in a process that may not ask the hub, and whose caches are its own."""
    environment = {"HF_HOME": str(folder / "cache"), "HF_HUB_OFFLINE": "1", "PATH": "", "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, env=environment)
