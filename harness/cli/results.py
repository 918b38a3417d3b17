"""`harness score | report | leaderboard`: everything one can do with finished runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.output import print_tables, show
from harness.evaluation import Run, rescored


def score(options: argparse.Namespace) -> int:
    """Recompute metrics from the journal and print the tables."""
    done = rescored(Path(options.run))
    print_tables(done, options.format, options.with_published)
    print(f"results: {done.folder}")
    return 0


def report(options: argparse.Namespace) -> int:
    """Print a run's tables again."""
    done = Run.load(Path(options.run))
    tables = done.tables_with_published() if options.with_published else done.tables
    if options.plots:
        from harness.report.plots import draw_all

        for file in draw_all(tables, Path(options.plots)):
            print(f"figure: {file}")
    show(tables, options.format, options.output)
    return 0


def leaderboard(options: argparse.Namespace) -> int:
    """Merge runs of the same benchmark."""
    from harness.report.leaderboard import merge

    runs = [Run.load(Path(folder)) for folder in options.runs]
    first = runs[0]
    entries = [(run.meta, run.scores, run.spec.get("tables", []), run.metrics) for run in runs]
    show(merge(entries, first.published() if options.with_published else ()), options.format, options.output)
    return 0
