"""`harness score | report`: everything one can do with finished runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from harness.cli.output import print_tables, published, readable, show, tables_named, write
from harness.evaluation import Run, rescored, run_folder
from harness.report import draw
from harness.report import messages as traffic
from harness.runtime.manifest import META, check_journals, read_meta
from harness.tables import Table


def score(options: argparse.Namespace) -> int:
    """Recompute metrics from the journal and print the tables."""
    allowed = {"allow_code_execution": options.allow_code_execution, "sandbox": options.sandbox}
    done = rescored(options.run, **allowed)
    print_tables(done, options)
    print(f"results: {done.folder}")
    return 0


def report(options: argparse.Namespace) -> int:
    """Print a run's tables again."""
    done = Run.load(options.run)
    tables = done.with_published(published(options))
    if options.plots:
        for i, table in enumerate(table for table in tables if table.figure):
            file = Path(options.plots) / f"figure{i + 1}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            draw(table, file)
            print(f"figure: {file}")
    return _show(tables, done, options)


def messages(options: argparse.Namespace) -> int:
    """Who sent how much to whom."""
    folder = run_folder(options.run)
    check_journals(read_meta(folder / META), folder)
    rows = list(traffic.messages(folder, options.condition))
    if not rows:
        print("no agent sent a message", file=sys.stderr)
    text = traffic.written(rows, options.format)
    write(text, options.output)
    if options.plots:
        figures = Path(options.plots)
        figures.mkdir(parents=True, exist_ok=True)
        for i, (_, episode) in enumerate(groupby(rows, key=lambda row: row.episode)):
            traffic.heat_map(episode, figures / f"messages{i + 1}.png")
    return 0


def _show(tables: Sequence[Table], run: Run, options: argparse.Namespace) -> int:
    """Show the tables that the options name; without a name those that have something to read."""
    selected = tables_named(tables, run.table_specs, options.table) if options.table else readable(tables, options)
    show(selected, options.format, run.spec.name, options.output)
    return 0
