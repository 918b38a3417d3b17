"""`harness score RUN --judge`: judges rate a finished run."""

from __future__ import annotations

import argparse

from harness.api.errors import SpecError
from harness.cli.evaluate import pairs
from harness.cli.options import ASKING
from harness.cli.progress import Progress
from harness.config.project import find
from harness.evaluation.run import Run
from harness.runtime.options import Options

from .judge_options import engine_of
from .judge_runs import judge


def judged(folder: str, options: argparse.Namespace) -> Run:
    """The run, once its judges were asked. Raises `KeyboardInterrupt` if they are not all."""
    if options.judge is None:
        flag = next(name for name in ("judge_args", "judge_metric") if getattr(options, name))
        raise SpecError(f"--{flag} without --judge", hint="--judge alone asks the judges of the run's spec.")
    metric = None if options.judge_metric is None else pairs(options.judge_metric, "--judge_metric")
    engine = engine_of(None if options.judge == "spec" else options.judge, options.judge_args, find())
    names = (*ASKING, "allow_code_execution", "sandbox")
    how = Options(**{name: getattr(options, name) for name in names})
    with Progress(options.quiet, lines=engine is not None and engine.asks_people) as bars:
        return judge(folder, engine, metric, options=how, on_more=bars.begin)
