"""`harness plot`: a chart of finished runs as a file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.config import resolve
from harness.config.plan import Plan
from harness.config.project import find
from harness.report import RunScores
from harness.report.charts import ChartOptions, ChartRun, Material
from harness.report.charts import plot as draw_chart
from harness.results import Run
from harness.runtime.manifest import check_journals
from harness.view_api import Scene, Transcript


def material(runs: Sequence[Run]) -> Material:
    """Finished runs as charts read them. Raises `DataError` if their journals were cut, or they cannot be compared."""
    for run in runs:
        check_journals(run.meta, run.folder)
    return Material.of([_source(run) for run in runs])


def _source(run: Run) -> ChartRun:
    def plan() -> Plan:
        from harness.engines.mock import Mock

        return replace(resolve.plan(run.spec, find(), Mock()), model=str(run.meta["model"]))

    def scenes(transcript: Transcript) -> Sequence[Scene]:
        from harness.viewer.views import Views

        game = next((one for one in plan().conditions if one.id == transcript.condition), None)
        played = (game.task, game.protocol) if game is not None else (None, None)
        return Views(find()).scenes(transcript, *played)[0]

    scores = RunScores(run.meta, run.scores, run.table_specs, run.metrics, run.prices, run.headline)
    return ChartRun(scores, run.folder, plan, scenes)


def plot(options: argparse.Namespace) -> int:
    """Draw one chart of one or several runs of a spec."""
    chosen = ChartOptions(options.x, options.metric, options.by, options.condition, options.episode)
    runs = [Run.load(folder) for folder in options.runs]
    done = draw_chart(options.kind, material(runs), chosen, Path(options.output))
    print(f"{done.title}. {done.about}")
    print(f"figure: {options.output}")
    return 0
