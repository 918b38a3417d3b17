"""Printing results: the spec's tables, and what a reader must know besides."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from harness.config.project import find
from harness.errors import DataError
from harness.judges import in_words
from harness.printable import clean_name
from harness.report import load_published, page, render
from harness.results import Run
from harness.storage import write_atomically
from harness.storage.plugin_errors import ERRORS, tracebacks
from harness.tables import Published, Table, TableSpec


def published(options: argparse.Namespace) -> list[Published]:
    """The papers' figures, if the options ask for them."""
    return [t for folder in find().published() for t in load_published(folder)] if options.with_published else []


def print_tables(run: Run, options: argparse.Namespace) -> None:
    """Print a run's tables, and on stderr what failed."""
    show(readable(run.with_published(published(options)), options), options.format, run.spec.name)
    judges = {name: one for name, one in run.meta.get("judges", {}).items() if name in run.metrics}
    for line in in_words(judges, str(run.meta["model"])):
        print(clean_name(line), file=sys.stderr)
    failed, log = run.failed, run.folder / ERRORS
    if options.debug:
        for text in tracebacks(run.folder):
            print(text, file=sys.stderr)
    for name, report in run.meta.get("engines", {}).items():
        if count := report.get("failures", 0):
            of = report.get("requests", count)
            print(f"{count} of {of} requests to the engine {name!r} failed: moves without an answer.", file=sys.stderr)
            print(f"  `error` in {run.folder}/journal*.jsonl says why.", file=sys.stderr)
    if failed:
        print(f"{len(failed)} of {len(run.scores)} episodes failed and are not in the numbers; e.g.", file=sys.stderr)
        for score in failed[:3]:
            print(f"  {score.id}: {score.error}", file=sys.stderr)
        if not options.debug and any(tracebacks(run.folder)):
            print(f"  The tracebacks are in {log}; --debug prints them.", file=sys.stderr)


def tables_named(tables: Sequence[Table], specs: Sequence[TableSpec], name: str) -> list[Table]:
    """The tables that a name means: a title, or a number in the paper; `specs` are their entries, in the same order.

    Raises:
        DataError: naming near matches and all tables there are.
    """
    matches = [table for table, entry in zip(tables, specs, strict=True) if entry.called(name)]
    if matches:
        return matches
    matches = [table for table in tables if name.strip() and name.casefold() in table.title.casefold()]
    if len(matches) != 1:  # part of a title, if only one has it
        numbers = {entry.title: ", ".join((*entry.paper, *entry.published)) for entry in specs}
        listed = "\n".join(f"  {title}{f' ({of_paper})' if of_paper else ''}" for title, of_paper in numbers.items())
        what = f"several tables have {name!r} in their title" if matches else f"no table is called {name!r}"
        likely = get_close_matches(name.casefold(), map(str.casefold, numbers), n=1)
        hint = next((f"Did you mean {title!r}?" for title in numbers if title.casefold() in likely), None)
        raise DataError(f"{what}; there are:\n{listed}", hint=hint)
    return matches


def readable(tables: Sequence[Table], options: argparse.Namespace) -> list[Table]:
    """For reading: no figure data unless asked for, and no table without a single number."""
    if options.format in ("csv", "json", "html"):
        return list(tables)
    candidates = [table for table in tables if options.figures or not table.is_data]
    empty = [table for table in candidates if all(cell.value is None for row in table.rows for cell in row.cells)]
    for table in empty:
        print(f"not shown, without a single number: {table.title}", file=sys.stderr)
    return [table for table in candidates if table not in empty]


def show(tables: Sequence[Table], form: str, title: str, file: str | None = None) -> None:
    """Print tables in a form, or write them to a file. JSON is one list, HTML one page."""
    if form == "json":
        text = json.dumps([table.to_json() for table in tables], indent=1, default=str)
    elif form == "html":
        text = page(title, tables)
    else:
        text = "\n\n".join(render(table, form) for table in tables)
    write(text, file)


def write(text: str, file: str | None) -> None:
    """Print a text, or write it to a file."""
    if file is None:
        print(text)
    else:
        write_atomically(Path(file), text + "\n")
