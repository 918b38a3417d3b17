"""Runs on a Ray cluster, and what they leave behind."""

import contextlib
import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
from harness import storage
from harness.extensions.ray import worker_locks
from tests.helpers.toy import TOY

RAY = {"use": "ray", "workers": 3, "num_cpus": 1}


def run(folder: Path, model: Any = None, executor: Any = RAY, **more: Any) -> harness.Run:
    more = {"repeats": 3, "max_concurrency": 4, **more}
    return harness.evaluate("toy", model, output_path=folder, project=TOY, executor=executor, **more)


def recorded(folder: Path) -> Counter[tuple[str, str, int]]:
    """How often each move of each episode is in the journals."""
    lines = [line for path in storage.journals(folder) for _, line in storage.lines(path)]
    return Counter((line["e"], line["s"], line["i"]) for line in lines if line["k"] == "move")


def killing(folder: Path, after: Callable[[int], list[int]]) -> Any:
    """For `on_score`: kills the workers that `after` names when so many episodes are finished."""
    count = 0

    def on_score(score: Any, total: int) -> None:
        nonlocal count
        count += score is not None
        for worker in after(count) if score is not None else ():
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):  # dead already, or not there yet
                process = json.loads(worker_locks.path_of(folder, worker).read_text())["pid"]
                os.kill(process, signal.SIGKILL)

    return on_score
