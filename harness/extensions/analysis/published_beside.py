"""Published figures beside a run's own: the cell each belongs to, or the reason why it has none, and notes on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.api import Metric
from harness.api.errors import SpecError, near
from harness.tables import Cell, EpisodeScore, Row, TableKey, TableSpec, error_of, text
from harness.tables.axis import Axis, Key
from harness.tables.published_figures import PublishedFigure, PublishedTable

Figures = dict[Key, dict[tuple[Key | None, str], PublishedFigure]]
"""Row → (column, None for the overall one; metric) → figure."""


@dataclass
class References(TableKey):
    """The published tables that are beside one of a run: rows below its own.

    Attributes:
        tables: they.
        unplaced: reason → how many figures have no cell for it.
    """

    tables: Sequence[PublishedTable]
    unplaced: Counter[str] = field(default_factory=Counter)
    _placed: list[tuple[str, Axis, Figures]] = field(default_factory=list)  # (source, the table's rows, its figures)

    def has_errors(self) -> bool:
        """Whether some figure has a standard error."""
        return any(record.stderr is not None for reference in self.tables for record in reference.records)

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
            self._placed.append((reference.source, rows, figures))

    def more_rows(
        self,
        table: TableSpec,
        rows: Mapping[Key, Row],
        columns: Sequence[tuple[Key | None, str | None]],
        metrics: Mapping[str, Metric],
    ) -> tuple[list[Row], list[str]]:
        """The rows of the placed figures."""
        more = []
        for source, axis, figures in self._placed:
            for key in axis.sorted(figures):
                places = [(column, metric or axis.metric(key) or table.cells[0]) for column, metric in columns]
                more.append(axis.row(key, [_figure(table, figures[key].get(place)) for place in places], source))
        return more, []

    def notes(self, table: TableSpec, scores: Sequence[EpisodeScore]) -> Iterator[str]:
        """The sources, what a reader must know before comparing, and how many figures have no cell."""
        apart = () if table.overall else (*table.rows, *table.columns)  # nothing is averaged over these
        for reference in self.tables:
            profile = f", profile {reference.profile}" if reference.profile else ""
            yield f"† published: {reference.source}{profile}; not run here."
            if reference.differs:
                yield f"† {reference.differs}"
            yield from (f"† {warning}" for warning in reference.warnings)
            # Means over other values are other means.
            yield from (f"† {other}: not comparable as a whole." for other in other_coverage(reference, scores, apart))
        if self.unplaced:
            every, count = sum(len(one.records) for one in self.tables), sum(self.unplaced.values())
            listed = ", ".join(f"{n} {reason}" for reason, n in self.unplaced.items())
            yield f"† {count} of {every} published figures are not placed in this table: {listed}."


def cited(table: TableSpec, published: Iterable[PublishedTable]) -> TableSpec:
    """The table with the published tables that it names beside it, to be filled once; unchanged if none are given.

    Raises `SpecError` for a name that is not there.
    """
    by_id = {one.id: one for one in published}
    if not (by_id and table.published):
        return table
    for name in table.published:
        if name not in by_id:
            raise SpecError(f"table {table.title!r}: unknown published table {name!r}", hint=near(name, by_id))
    beside = References([by_id[name] for name in table.published])
    return replace(table, added=(beside, *table.added))


def other_coverage(
    reference: PublishedTable, scores: Sequence[EpisodeScore], apart: Sequence[str] = ()
) -> Iterable[str]:
    """For each label but `apart`: which values a publication covers, where the episodes have others."""
    for label, values in reference.covers.items():
        theirs = list(map(text, values))
        ours = list(dict.fromkeys(text(score.labels[label]) for score in scores if label in score.labels))
        if label not in apart and ours and set(ours) != set(theirs):
            yield f"{reference.source} covers {label} {', '.join(theirs)}; this run {label} {', '.join(ours)}"


def _figure(table: TableSpec, record: PublishedFigure | None) -> Cell:
    """The cell of a figure."""
    if record is None:
        return Cell(n=None)
    std = record.std if error_of(table.uncertainty, record.metric) == "std" else None
    return Cell(record.value, record.stderr, record.n, std=std)


def _misfit(record: PublishedFigure, table: TableSpec) -> str | None:
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


def other_episodes(reference: PublishedTable, run: Mapping[str, Any], scores: Sequence[EpisodeScore]) -> str:
    """How the episodes of a run are others than those behind a publication; empty if they are not known to be.

    `run`: its run.json.
    """
    limit = ((run.get("identity") or {}).get("spec") or {}).get("limit")
    few = [f"{reference.source} covers all cases; this run at most {limit} per condition"] if limit else []
    swept: dict[str, dict[Any, None]] = {}
    for figure in reference.records:
        for label in figure.labels.keys() - {"model"}:
            swept.setdefault(label, {})[figure.labels[label]] = None
    whole = replace(reference, covers={**{label: tuple(values) for label, values in swept.items()}, **reference.covers})
    return "; ".join([*other_coverage(whole, scores), *few])
