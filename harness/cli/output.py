"""Printing results: the spec's tables, and what a reader must know besides."""

from __future__ import annotations

import argparse
import contextlib
import json
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from harness.api.printable import clean_name
from harness.api.run_files import ERRORS
from harness.cli.terminal import terminal_width
from harness.evaluation import post_run
from harness.evaluation.run import Run
from harness.plugins.lookup import part
from harness.report import render
from harness.report.provenance import in_one_line, models_of
from harness.storage import write_atomically
from harness.tables import EpisodeScore, Table
from harness.tables.parse_share import by_named_model, in_percent
from harness.tables.scores import INNER_LIMITED
from harness.tables.table import words_of


def print_after(run: Run) -> None:
    """Print on stderr what readers must know about what followed a run."""
    for cls in post_run.of_run(run):
        for line in cls.lines(run):
            print(clean_name(line), file=sys.stderr)


def print_tables(run: Run, options: argparse.Namespace, *, tables_too: bool = True) -> None:
    """Print a run's tables and where it is, and on stderr what failed. `tables_too`: else all but the tables."""
    tables = run.with_published(run.published()) if options.with_published else run.tables
    if tables_too:
        if options.format in ("text", "markdown"):
            print(f"{clean_name(in_one_line(run.meta))}\n")
        show(with_reasons(run, readable(tables, options)), options.format, run.spec.name)
    print_after(run)
    failed = run.failed
    if options.debug:
        for text in _tracebacks(run):
            print(text, file=sys.stderr)
    for line in turns_in_words(run.scores, run.folder, models_of(run.meta)):
        print(line, file=sys.stderr)
    if failed:
        print(f"{len(failed)} of {len(run.scores)} episodes failed and are not in the numbers; e.g.", file=sys.stderr)
        for score in failed[:3]:
            print(f"  {score.id}: {score.error}", file=sys.stderr)
        if not options.debug and any(_tracebacks(run)):
            print(f"  The tracebacks are in {run.folder / ERRORS}; --debug prints them.", file=sys.stderr)
    # Lines behind data would make it unreadable for what reads it.
    with contextlib.redirect_stdout(sys.stdout if options.format in ("text", "markdown") else sys.stderr):
        if missing := _missing(run, tables, getattr(options, "limit", None)):
            print(missing)
        print(f"view: {shlex.join(['harness', 'view', str(run.folder)])}")
        print(f"results: {run.folder}")


def _tracebacks(run: Run) -> Iterator[str]:
    from harness.storage.errors_on_disk import tracebacks  # what only a failed episode needs

    return tracebacks(run.folder)


def _missing(run: Run, tables: Sequence[Table], limit: int | None) -> str | None:
    """What the headline's numbers lack for an error or an interval, where they have none."""
    name = run.headline.metric
    shown = [
        cell
        for table in tables
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
        if name == (column.metric or row.metric) and row.published is None and cell.n
    ]
    if all(cell.stderr is not None or cell.low is not None for cell in shown):
        return None
    cases: dict[str, set[str]] = {}
    for score in run.scores:
        cases.setdefault(score.condition, set()).update([score.case] if score.number(name) is not None else [])
    few = sum(len(own) == 1 for own in cases.values())
    if not few:
        return None
    where = f"harness show --spec {run.spec.name} says how many the task has"
    more = "there are more without --limit" if limit else where
    have = f"{few} of {len(cases)} conditions have" if len(cases) > 1 else "the condition has"
    return f"no interval: {have} only one case with a number for {words_of(name)}; {more}"


def turns_in_words(
    scores: Iterable[EpisodeScore], folder: Path, models: Mapping[str, str] = MappingProxyType({})
) -> list[str]:
    """For each model of a run, which share of its turns was parsed, and why others were not.

    `models`: name in the spec → the model, as tables call it.
    """
    lines = []
    for model, reads in by_named_model(scores).items():
        asked, name = reads.asked, clean_name(models.get(model, model))
        what = f"{name}: {asked:,} turn{'s' * (asked != 1)}, {in_percent(reads.read, asked)} parsed"
        why = ", ".join(f"{count:,} {_kind(kind, count)}" for kind, count in reads.failed.most_common())
        lines.append(f"{what} ({why})" if why else what)
    if any("(" in line for line in lines):
        lines.append(f"  `error` in {folder}/journal*.jsonl says why.")
    return lines


def _kind(kind: str, count: int) -> str:
    """What became of so many turns that ended without an action, in words."""
    if kind == "parse":
        return "parse failure" if count == 1 else "parse failures"
    return _KINDS.get(kind, clean_name(kind))


_KINDS = {
    "limit": "at a limit of the spec",
    INNER_LIMITED: "at a limit of the agent's own model",
    "inner": "failed with a call of the agent's own model",
    "refused": "refused",
    "context_length": "longer than the context window",
    "request": "failed after every retry",
    "engine": "failed",
}


def readable(tables: Sequence[Table], options: argparse.Namespace) -> list[Table]:
    """The tables to print for a reader: figure data only if asked for, and no table in which every cell is empty."""
    if options.format in ("csv", "json", "html"):
        return list(tables)
    candidates = [table for table in tables if options.figures or not table.is_data]
    # One whose numbers are left out since replies were not read says why.
    empty = [
        table
        for table in candidates
        if all(cell.value is None and not cell.unread for row in table.rows for cell in row.cells)
    ]
    for table in empty:
        print(f"skipped empty table: {table.title}", file=sys.stderr)
    return [table for table in candidates if table not in empty]


def with_reasons(run: Run, shown: Sequence[Table]) -> list[Table]:
    """The tables that are shown, the first with the reasons for a missing headline that stand below none of them."""
    stand = {note for table in shown for note in table.notes}
    reasons = run.headline.unread(run.scores).values() if run.metrics else ()
    lost = [reason for reason in reasons if reason not in stand]
    return [replace(table, notes=(*table.notes, *lost)) if i == 0 and lost else table for i, table in enumerate(shown)]


def show(tables: Sequence[Table], form: str, title: str, file: str | None = None) -> None:
    """Print tables in a form, fitted to the screen, or write them to a file. JSON is one list, HTML one page."""
    if form == "json":
        text = json.dumps([table.to_json() for table in tables], indent=1, default=str)
    elif form == "html":
        text = part("page", "html")(title, tables)
    else:
        width = terminal_width() if file is None else None
        text = "\n\n".join(render(table, form, width) for table in tables)
    write(text, file)


def write(text: str, file: str | None) -> None:
    """Print a text, or write it to a file."""
    if file is None:
        print(text)
    else:
        write_atomically(Path(file), text + "\n")
        print(f"wrote: {file}", file=sys.stderr)
