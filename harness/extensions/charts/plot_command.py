"""`harness plot`: a chart of finished runs as a file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.api.run_files import META
from harness.cli import options as opt
from harness.cli.output import write
from harness.cli.usage import Parser
from harness.config import resolve
from harness.config.plan import Plan
from harness.config.project import find
from harness.evaluation.load_run import load_run, run_folder
from harness.evaluation.run import Run
from harness.extensions.analysis.leaderboard import RunScores
from harness.extensions.charts import ChartOptions, ChartRun, Material
from harness.extensions.charts import message_counts as traffic
from harness.extensions.charts import plot as draw_chart
from harness.plugins.manifests import offers
from harness.runtime.run_schema import check_journals, read_meta


def material(runs: Sequence[Run], scores: Sequence[RunScores] = ()) -> Material:
    """Finished runs as charts read them. Raises `DataError` if their journals were cut, or they cannot be compared.

    `scores`: their numbers, under other names of the runs.
    """
    for run in runs:
        check_journals(run.meta, run.folder)
    return Material.of([_source(*pair) for pair in zip(runs, scores or map(RunScores.of, runs), strict=True)])


def _source(run: Run, scores: RunScores) -> ChartRun:
    def plan() -> Plan:
        from harness.engines.mock import Mock

        return replace(resolve.plan(run.spec, find(), Mock()), model=str(run.meta["model"]))

    return ChartRun(scores, run.folder, plan)


def plot(options: argparse.Namespace) -> int:
    """Draw one chart of one or several runs of a spec."""
    chosen = ChartOptions(options.x, options.metric, options.by, options.condition, options.episode)
    runs = [load_run(folder) for folder in options.runs]
    done = draw_chart(options.kind, material(runs), chosen, Path(options.output))
    print(f"{done.title}. {done.about}")
    print(f"figure: {options.output}")
    return 0


def plot_options(command: Parser) -> None:
    """The options of `harness plot`."""
    opt.add(command, "runs")
    kinds = offers("charts")
    text = ", ".join(f"{kind} ({offer.value['help']})" for kind, offer in kinds.items())
    command.add_argument("--kind", required=True, choices=[*kinds], metavar="KIND", help=text)
    text = "the file to write: .svg, .pdf or .png"
    command.add_argument("-o", "--output", required=True, metavar="FILE", help=text)
    command.add_argument("--metric", metavar="NAME", help="the metric to draw (default: the spec's headline)")
    text = "the number along the axis of scaling (default: the size of the group)"
    command.add_argument("--x", metavar="LABEL", help=text)
    text = "the label that makes lines, points or bars (default: the model, or what the spec compares)"
    command.add_argument("--by", metavar="LABEL", help=text)
    command.add_argument("--condition", metavar="ID", help="episodes of this condition only")
    command.add_argument("--episode", metavar="ID", help="this episode (heatmap, blame)")


def messages(options: argparse.Namespace) -> int:
    """Who sent how much to whom."""
    folder = run_folder(options.run)
    check_journals(read_meta(folder / META), folder)
    rows = list(traffic.messages(folder, options.condition))
    if not rows:
        print("the run records no message of one agent to another (`sent`, a fact of its protocol)", file=sys.stderr)
    write(traffic.written(rows, options.format), options.output)
    return 0


def messages_options(command: Parser) -> None:
    """The options of `harness messages`."""
    command.add_argument("run", metavar="RUN", help="the run's folder")
    command.add_argument("--condition", metavar="ID", help="messages of this condition only")
    command.add_argument("--format", choices=("csv", "json"), default="csv", help="format of the data (default: csv)")
    opt.add(command, "output")
