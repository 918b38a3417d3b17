"""Published figures beside a run's own: the cell each belongs to, or the reason why it has none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.errors import SpecError, near

from .axis import Axis, Key
from .spec import TableSpec
from .table import Cell, Published, Record, Row, error_of, text

Figures = dict[Key, dict[tuple[Key | None, str], Record]]
"""Row → (column, None for the overall one; metric) → figure."""


@dataclass
class References:
    """The published tables that stand beside one of a run.

    Attributes:
        tables: they.
        unplaced: reason → how many figures have no cell for it.
    """

    tables: Sequence[Published]
    unplaced: Counter[str] = field(default_factory=Counter)
    _placed: list[tuple[str, Figures]] = field(default_factory=list)  # (source, its figures)

    @classmethod
    def cited(cls, table: TableSpec, by_id: Mapping[str, Published]) -> References:
        """Those that the entry names. Raises `SpecError` for a name that is not there."""
        for name in table.published:
            if name not in by_id:
                raise SpecError(f"table {table.title!r}: unknown published table {name!r}", hint=near(name, by_id))
        return cls([by_id[name] for name in table.published])

    def models(self, table: TableSpec) -> set[str]:
        """The models of the figures that have a cell in the table, if it distinguishes models."""
        if "model" not in (*table.rows, *table.columns):
            table = replace(table, rows=("model", *table.rows))
        fitting = [r for reference in self.tables for r in reference.records if _misfit(r, table) is None]
        return {text(record.labels["model"]) for record in fitting if "model" in record.labels}

    def place(self, table: TableSpec, rows: Axis, columns: Axis) -> None:
        """Find the cell of every figure, and let the axes know it."""
        for reference in self.tables:
            figures: Figures = {}
            for record in reference.records:
                if reason := _misfit(record, table):
                    self.unplaced[reason] += 1
                    continue
                labels = {**record.labels, "metric": record.metric}
                column = None if record.overall else columns.key(labels)
                row = figures.setdefault(rows.key(labels), {})
                if (column, record.metric) in row:  # they differ in a label of `where` alone
                    self.unplaced["where another one stands"] += 1
                row.setdefault((column, record.metric), record)
            self._placed.append((reference.source, figures))

    def rows(self, table: TableSpec, rows: Axis, columns: Sequence[tuple[Key | None, str | None]]) -> Iterator[Row]:
        """The rows of the placed figures. `columns`: key (None for the overall one) and metric of each, as far as
        columns distinguish metrics."""
        for source, figures in self._placed:
            for key in rows.sorted(figures):
                metrics = [metric or rows.metric(key) or table.cells[0] for _, metric in columns]
                places = [(column, metric) for (column, _), metric in zip(columns, metrics, strict=True)]
                yield rows.row(key, [_figure(table, figures[key].get(place)) for place in places], source)


def _figure(table: TableSpec, record: Record | None) -> Cell:
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
