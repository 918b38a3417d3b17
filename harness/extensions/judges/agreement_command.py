"""`harness agreement`."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.api.errors import DataError, near
from harness.cli import options as opt
from harness.cli.output import show
from harness.cli.usage import Parser
from harness.config.project import find
from harness.evaluation.load_run import load_run
from harness.extensions.judges.corrected import corrected_table
from harness.extensions.judges.human_labels import agreement_table, by_episode, panel_table, read_labels
from harness.extensions.judges.judge_task import RATING, JudgedMetric
from harness.tables import Table
from harness.tables.scores import bounds_of


def agreement(options: argparse.Namespace) -> int:
    """How far a run's numbers agree with labels that people gave, and the judges of a panel with each other."""
    run = load_run(options.run, find())
    judged = [name for name, metric in run.metrics.items() if isinstance(metric, JudgedMetric)]
    name = options.metric or next(iter(judged), None)
    if name is None:
        raise DataError("the run has no judged metric", hint="Say which number: --metric NAME.")
    if name not in run.metrics:
        raise DataError(f"the run has no metric {name!r}", hint=near(name, run.metrics))
    record = run.meta.get("judges", {}).get(name, {})
    tables: list[Table] = []
    if options.labels:
        labels = by_episode(read_labels(Path(options.labels)), run.scores)
        judge = str(record.get("judge", run.meta["model"]))
        tables.append(agreement_table(name, judge, run.scores, labels, run.cluster))
        bounds = bounds_of(run.metrics[name], run.scores, name)
        tables += filter(None, [corrected_table(name, run.scores, labels, run.cluster, bounds)])
    metric = run.metrics[name]
    if record and isinstance(metric, JudgedMetric):
        of = metric.of if metric.of in metric.criteria else RATING
        tables += filter(None, [panel_table(name, record.get("panel", ()), run.folder / str(record["folder"]), of)])
    if not tables:
        hint = "Give labels of people: --labels FILE.csv with the columns case and label."
        raise DataError(f"one judge gave {name}, and there is nothing to compare it with", hint=hint)
    show(tables, options.format, f"Agreement of {name}", options.output)
    return 0


def options(command: Parser) -> None:
    """The options of `harness agreement`."""
    command.add_argument("run", metavar="RUN", help="the run's folder")
    text = "CSV or JSON lines with the columns case (or episode), label and, for several people, rater"
    command.add_argument("--labels", metavar="FILE", help=text)
    command.add_argument("--metric", metavar="NAME", help="the number to compare (default: the first judged metric)")
    opt.add(command, "output", "format")
