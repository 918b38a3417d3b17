"""Programs that models wrote for a task of lm-eval: run in our sandbox where the task asks the metric `code_eval`.

HumanEval, MBPP and others of the package grade with the metric `code_eval` of the package `evaluate`, which runs
programs in a child process that nothing confines. What such a task loads under this name is a `CodeEval` instead.
"""

from __future__ import annotations

import contextlib
import math
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.api.errors import PluginError
from harness.extensions.datasets.libraries import needed as local_script
from harness.plugins import approvals

NAME = "code_eval"


class CodeEval:
    """The metric's `compute`, by `harness.extensions.sandbox`.

    Attributes:
        ready: whether it runs programs. While a task is loaded it does not: tasks try it out then.
    """

    def __init__(self) -> None:
        self.ready = False

    def compute(
        self,
        references: Sequence[str],
        predictions: Sequence[Sequence[str]],
        k: Sequence[int] = (1, 10, 100),
        timeout: float = 3.0,
        **_: Any,
    ) -> tuple[dict[str, float], dict[int, list[Any]]]:
        """pass@k over all references, and for each reference (number of the prediction, verdict).

        Args:
            references: one test program each, which raises if a prediction is wrong.
            predictions: the programs for each of them.
            k: as in pass@k (Chen et al., 2021, eq. 1).
            timeout: seconds of one program.

        Raises:
            SetupError: this machine cannot confine programs.
        """
        if not self.ready:
            return {f"pass@{count}": 0.0 for count in k}, {}
        verdicts = [
            [_passes(program, test, timeout) for program in programs]
            for test, programs in zip(references, predictions, strict=True)
        ]
        shares = {
            f"pass@{count}": sum(pass_at(len(v), sum(v), count) for v in verdicts) / len(verdicts)
            for count in k
            if all(len(v) >= count for v in verdicts)
        }
        words = {True: "passed", False: "failed"}
        return shares, {
            i: [(j, {"task_id": i, "passed": ok, "result": words[ok], "completion_id": j}) for j, ok in enumerate(v)]
            for i, v in enumerate(verdicts)
        }


def pass_at(n: int, correct: int, k: int) -> float:
    """The chance that one of k out of n programs, of which some are correct, is correct (Chen et al., 2021, eq. 1)."""
    return 1.0 - math.comb(n - correct, k) / math.comb(n, k)


def _passes(program: str, test: str, seconds: float) -> bool:
    """Whether a program and its test end without error. A program that ends early did not get to the last line."""
    from harness.extensions.sandbox import ProgramLimits, execute

    mark = secrets.token_hex(16)
    ended = execute(f"{program}\n{test}\nprint('\\n{mark}')\n", ProgramLimits(wall=seconds))
    return ended.status == "ok" and ended.output.rstrip().endswith(mark)


@contextlib.contextmanager
def in_place_of_the_metric() -> Iterator[None]:
    """Give tasks that are loaded meanwhile a `CodeEval` where they load the metric."""
    import evaluate

    usual: Callable[..., Any] = evaluate.load

    loaded: list[CodeEval] = []

    def load(path: str, *arguments: Any, **more: Any) -> Any:
        if path != NAME:
            approvals.require(local_script(path))
            return usual(path, *arguments, **more)
        loaded.append(CodeEval())
        return loaded[-1]

    evaluate.load = load
    try:
        yield
    finally:
        evaluate.load = usual
        for metric in loaded:
            metric.ready = True


def confined(yaml: Path | None) -> bool:
    """Whether a Python file beside a task's YAML has such a metric, so that its programs run in the sandbox."""
    modules = [module for module in tuple(sys.modules.values()) if getattr(module, "__file__", None)]
    beside = [module for module in modules if yaml is not None and Path(str(module.__file__)).parent == yaml.parent]
    return any(isinstance(value, CodeEval) for module in beside for value in tuple(vars(module).values()))


def unsafe(name: str) -> PluginError:
    """The error for a task that runs what models write by itself."""
    message = f"task {name!r} runs programs that models wrote by code of its own, which no sandbox confines"
    hint = f"Programs of tasks that grade with the metric {NAME} run in a sandbox, with --allow_code_execution."
    return PluginError(message, hint=hint, at=("task",))
