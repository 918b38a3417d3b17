"""Published figures beside a run's own: the cell each belongs to, or the reason why it has none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from harness.errors import SpecError, near

from .axis import Axis, Key
from .spec import TableSpec
from .table import Cell, Published, Record, error_of, text

Figures = dict[Key, dict[tuple[Key | None, str], Record]]
"""Row → (column, None for the overall one; metric) → figure."""


def cited(table: TableSpec, published: Iterable[Published]) -> list[Published]:
    """The published tables that the entry names; none where none are given.

    Raises:
        SpecError: for a name that is not there.
    """
    by_id = {reference.id: reference for reference in published}
    if not by_id:
        return []
    for name in table.published:
        if name not in by_id:
            raise SpecError(f"table {table.title!r}: unknown published table {name!r}", hint=near(name, by_id))
    return [by_id[name] for name in table.published]


def models(table: TableSpec, references: Iterable[Published]) -> set[str]:
    """The models of the figures that have a cell in the table, if it distinguishes models."""
    if "model" not in (*table.rows, *table.columns):
        table = replace(table, rows=("model", *table.rows))
    fitting = [r for reference in references for r in reference.records if _misfit(r, table) is None]
    return {text(record.labels["model"]) for record in fitting if "model" in record.labels}


def place(
    references: Sequence[Published], table: TableSpec, rows: Axis, columns: Axis
) -> tuple[list[tuple[str, Figures]], Mapping[str, int]]:
    """(source, its figures) for every reference, and reason → how many figures have no cell for it."""
    placed: list[tuple[str, Figures]] = []
    reasons: Counter[str] = Counter()
    for reference in references:
        figures: Figures = {}
        for record in reference.records:
            if reason := _misfit(record, table):
                reasons[reason] += 1
                continue
            labels = {**record.labels, "metric": record.metric}
            column = None if record.overall else columns.key(labels)
            row = figures.setdefault(rows.key(labels), {})
            if (column, record.metric) in row:  # they differ in a label of `where` alone
                reasons["where another one stands"] += 1
            row.setdefault((column, record.metric), record)
        placed.append((reference.source, figures))
    return placed, reasons


def figure(table: TableSpec, record: Record | None) -> Cell:
    """The cell of a figure."""
    if record is None:
        return Cell(n=None)
    std = record.std if error_of(table.error, record.metric) == "std" else None
    return Cell(record.value, record.stderr, record.n, std=std)


def _misfit(record: Record, table: TableSpec) -> str | None:
    """Why a figure has no cell in the table, as what follows its count; None if it has one.

    A label that only `where` has need not be stated: which publication fits it is the entry's own choice.
    """
    for label, values in table.where.items():
        if label in record.labels and text(record.labels[label]) not in values:
            return f"of another {label} than the table's"
    if record.metric not in table.cells:
        return "of metrics for which it has no column"
    if record.overall and not table.overall:
        return "that are averages, for which it has no column"
    told_apart = set(table.rows) | (set() if record.overall else set(table.columns))
    told_apart.discard("metric")
    if lacking := sorted(told_apart - record.labels.keys()):
        return f"without {' and '.join(lacking)}"
    if further := sorted(record.labels.keys() - told_apart - table.where.keys() - {"model"}):  # it is the only one
        return f"by {' and '.join(further)}, which it does not distinguish"
    return None
