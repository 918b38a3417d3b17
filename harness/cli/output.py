"""Printing results: the spec's tables, and what a reader must know besides."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from harness.evaluation import Run
from harness.report import render, render_all
from harness.tables import Table


def print_tables(run: Run, form: str, with_published: bool) -> None:
    """Print a run's tables, and on stderr what failed."""
    tables = run.tables_with_published() if with_published else run.tables
    show(tables, form)
    failed = run.failed
    if failed:
        print(f"{len(failed)} of {len(run.scores)} episodes failed and are not in the numbers; e.g.", file=sys.stderr)
        for score in failed[:3]:
            print(f"  {score.id}: {score.error}", file=sys.stderr)


def show(tables: Sequence[Table], form: str, file: str | None = None) -> None:
    """Print tables in a form, or write them to a file."""
    text = formatted(tables, form)
    if file is None:
        print(text)
    else:
        from pathlib import Path

        from harness.store import write_atomically

        write_atomically(Path(file), text + "\n")


def formatted(tables: Sequence[Table], form: str) -> str:
    """All tables as one text; JSON is one list, HTML one page."""
    if form == "json":
        return json.dumps([table.to_json() for table in tables], indent=1, default=str)
    if form == "html":
        return render_all(tables)
    return "\n\n".join(render(table, form) for table in tables)
