"""`harness score | report`: everything one can do with finished runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.api.errors import DataError
from harness.api.printable import clean
from harness.cli.evaluate import interrupted
from harness.cli.output import print_after, print_tables, readable, show, with_reasons, write
from harness.evaluation import post_run
from harness.evaluation.load_run import load_run
from harness.evaluation.rescore import rescored
from harness.evaluation.run import Run
from harness.plugins.lookup import part
from harness.plugins.manifests import offers
from harness.runtime.run_schema import check_journals
from harness.storage import first_damaged, journals
from harness.tables import Table, TableKind
from harness.tables.keys import loaded
from harness.tables.kinds import is_key


def score(options: argparse.Namespace) -> int:
    """Recompute metrics from the journal and print the tables."""
    if (scores := post_run.scoring(vars(options))) is not None:
        try:
            done = scores(options.run, options)
        except KeyboardInterrupt:
            return interrupted("what was rated is kept")
    else:
        allowed = {"allow_code_execution": options.allow_code_execution, "sandbox": options.sandbox}
        done = rescored(options.run, **allowed)
        if not done.meta["graded_again"][-1]["texts_read"]:
            print(
                "recorded moves were not compared with their texts: the code that reads replies is another one",
                file=sys.stderr,
            )
    print_tables(done, options)
    return 0


def report(options: argparse.Namespace) -> int:
    """Print the tables of one or several runs again; as HTML a page with everything about them."""
    runs = [load_run(folder, unfinished=True) for folder in options.runs]
    for line in (line for run in runs for line in _warnings(run)):
        print(clean(line), file=sys.stderr)
    if entries := _of_kind(runs[0], options.table):
        runs = [replace(run, spec=replace(run.spec, data={**run.spec.data, "tables": entries})) for run in runs]
        options.table = None
    figures = runs[0].published() if options.with_published else []
    merged = part("merged", "a table of several runs") if len(runs) > 1 else None
    tables: list[Table] = merged(runs, figures) if merged else runs[0].with_published(figures)
    if options.plots:
        for i, table in enumerate(table for table in tables if table.figure):
            file = Path(options.plots) / f"figure{i + 1}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            part("figures", "--plots")(table, file)
            print(f"figure: {file}")
    if options.format != "html" or options.table:
        code = _show(tables, runs[0], options)
        for run in runs:
            print_after(run)
        return code
    whole = part("report", "a report as one page")
    page = whole(runs, tables, str(runs[0].spec.get("description", "")))
    write(page, options.output)
    if options.output:
        print(f"report: {options.output}")
    return 0


def _of_kind(run: Run, name: str | None) -> list[dict[str, Any]]:
    """The entries of a kind of tables, if `name` is that of one: the spec's, or the one that the kind proposes."""
    offer = offers("tables").get(name or "")
    if offer is None or is_key(offer):
        return []
    own = [entry for entry in run.spec.data.get("tables", []) if entry.get("kind") == name]
    proposed = None if own else loaded(offer, TableKind).proposed(run.headline)
    return own or ([{"kind": name, **proposed}] if proposed else [])


def _warnings(run: Run) -> Iterator[str]:
    """What readers of a run's tables must know about its journals: what they lack, and where they are damaged."""
    if run.unfinished:
        yield f"{run.folder}: {run.unfinished}"
        return  # its journals were read, and are whole
    aside = "The tables are those of scores.jsonl."
    try:
        check_journals(run.meta, run.folder)
        for path in journals(run.folder):
            if path.exists() and (line := first_damaged(path)) is not None:
                yield f"{path}:{line}: the line is not as it was written (its checksum differs). {aside}"
    except DataError as error:
        yield f"{error.message}. {aside}"
    except OSError as error:
        yield f"{run.folder}: its journal cannot be read: {error.strerror or error}. {aside}"


def _show(tables: Sequence[Table], run: Run, options: argparse.Namespace) -> int:
    """Show the tables that the options name; without a name those that have something to read."""
    named = part("named", "--table") if options.table else None
    selected = named(tables, run.table_specs, options.table) if named else readable(tables, options)
    show(with_reasons(run, selected), options.format, run.spec.name, options.output)
    return 0
