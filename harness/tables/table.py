"""A finished table as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, TypeVar

from .stats import IntervalMethod, is_rounding

T = TypeVar("T")

SCHEMA: Final = 1
"""Version of every JSON document that `harness.tables` writes."""

SIMULATED: Final = "‡"
"""Stands beside numbers of players that know the right answer (`harness.api.InformedPolicy`)."""
UNREAD: Final = "§"
"""Stands beside numbers of a model of whose turns too few were parsed (`HeadlineSpec.unread`)."""
SIMULATED_NAME: Final = "simulated"
"""The word in the name of a player that knows the right answer."""

Figure = Literal["bar", "line", "stacked", "heat"]
ErrorKind = Literal["sem", "std", "interval"]
Errors = ErrorKind | Mapping[str, ErrorKind] | None
"""One kind for all metrics of a table, or metric → kind: metrics that are left out show no error."""
ErrorStyle = Literal["parentheses", "plus_minus"]
Unit = Literal["thousands", "percent"]
Units = Unit | Mapping[str, Unit] | None
"""One unit for all metrics of a table, or metric → unit: metrics that are left out have none."""
Digits = int | Mapping[str, int]
"""Decimals of all metrics of a table, or metric → decimals: metrics that are left out have `DIGITS`."""
DIGITS: Final = 2
NumberForm = Literal["quantity", "plain", "count", "pvalue", "share", "interval", "rank"]
"""How a column's numbers are shown: in the table's unit and digits, in its digits, whole, as a p-value, as percent, as
whole with its interval, as the ranks that are possible."""


def text(value: Any) -> str:
    """A label's value as the text it is compared and shown by: 4 and "4" are one value; None is "–"."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def words_of(metric: str) -> str:
    """A metric's name without its project's, as words.

    >>> words_of("dpbench/deadlock_rate")
    'deadlock rate'
    """
    return metric.rpartition("/")[2].replace("_", " ")


def _of_metric(setting: T | Mapping[str, T], metric: str | None, default: T) -> T:
    """A setting for one metric: it is the same for all, or names metrics."""
    if isinstance(setting, Mapping):
        return default if metric is None else setting.get(metric, default)
    return setting


def error_of(error: Errors, metric: str | None) -> ErrorKind | None:
    """The kind of error that a metric's numbers show."""
    return _of_metric(error, metric, None)


@dataclass(frozen=True, slots=True)
class Cell:
    """One number of a table.

    Attributes:
        value: None if there is nothing to show.
        stderr: standard error of the value; None if unknown; 0, which is not shown, where all numbers are `equal`.
        n: observations behind the value; None if a publication does not say.
        failed: episodes with an error; they count in no value.
        missing: episodes without error that have no number, and planned ones that never ran.
        low, high: 95 % interval (`harness.tables.stats.interval`), if the table asks for one and the value has one.
        std: population standard deviation (ddof = 0) of the pooled numbers, if the table asks for it.
        uses_ground_truth: whether players of some of the episodes knew the right answer
            (`harness.api.InformedPolicy`).
        method: how the interval was computed, where `harness.tables.stats.interval_by` did; notes name it.
        borrowed: whether how much some of its conditions vary is known from the others alone
            (`harness.tables.stats.clustered`); a note says so.
        unread: whether too few turns of the model of some of the episodes were parsed to say anything of it.
        best: whether it is the best of its column, in tables that say which is.
        blank: whether its row has no such number, so that nothing is missing.
        beyond: whether the number meant lies above or below `value`, the last one that is not extrapolated; or is
            `value` at least, a sum that lacks what is unknown.
    """

    value: float | None = None
    stderr: float | None = None
    n: int | None = 0
    failed: int = 0
    missing: int = 0
    low: float | None = None
    high: float | None = None
    std: float | None = None
    uses_ground_truth: bool = False
    method: IntervalMethod | None = None
    borrowed: bool = False
    unread: bool = False
    best: bool = False
    blank: bool = False
    beyond: Literal["above", "below", "least"] | None = None

    @property
    def equal(self) -> bool:
        """Whether several numbers are behind it and all are equal: they do not say how sure the value is."""
        several = self.value is not None and self.stderr is not None and self.n is not None and self.n > 1
        return several and is_rounding(self.stderr or 0.0, [self.value or 0.0])


FOR_NOTES: Final = frozenset({"method", "borrowed"})
"""The fields of a `Cell` that notes put into words and no document has."""


@dataclass(frozen=True, slots=True)
class Column:
    """`key` maps the table's column labels to values, `names` shows them level by level ("" for an empty level)."""

    key: Mapping[str, Any]
    names: tuple[str, ...]
    metric: str | None = None
    overall: bool = False
    form: NumberForm = "quantity"


@dataclass(frozen=True, slots=True)
class Row:
    """`key` maps the table's row labels to values.

    `published` names the source of figures that were not run here; `group` says how a row that stands for several
    others weighs them.
    """

    key: Mapping[str, Any]
    names: tuple[str, ...]
    cells: tuple[Cell, ...]
    metric: str | None = None
    published: str | None = None
    group: Literal["size", "equal"] | None = None

    @property
    def uses_ground_truth(self) -> bool:
        """Whether all its episodes are simulated: the row is marked as a whole then, else cell by cell."""
        played = [cell for cell in self.cells if cell.n or cell.failed or cell.missing]
        return bool(played) and all(cell.uses_ground_truth for cell in played)

    @property
    def unread(self) -> bool:
        """Whether too few turns of its model were parsed for all of its numbers; marked as `uses_ground_truth`."""
        shown = [cell for cell in self.cells if cell.value is not None]
        return bool(shown) and all(cell.unread for cell in shown)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows × columns of cells, with everything a renderer needs and nothing rendered.

    Attributes:
        row_labels, column_labels: the labels that make them.
        row_names: what readers see for the row labels; these themselves if there are none.
        names: column label or metric → what readers see for it, where that is another name.
        error, error_style, digits, unit: how numbers are shown; see their types.
        figure: how it is drawn, if it is the data of a figure; "heat" is a table too.
        notes: what a reader must know beside it.
    """

    title: str
    row_labels: tuple[str, ...]
    column_labels: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    row_names: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    error: Errors = None
    error_style: ErrorStyle = "parentheses"
    digits: Digits = DIGITS
    unit: Units = None
    figure: Figure | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.row_names:
            object.__setattr__(self, "row_names", self.row_labels)

    @property
    def is_data(self) -> bool:
        """Whether readers of text see the data of a figure, as tidy rows: a heat map is as good a table."""
        return self.figure not in (None, "heat")

    def decimals(self, metric: str | None) -> int:
        """How many decimals a metric's numbers are shown with."""
        return _of_metric(self.digits, metric, DIGITS)

    def metric_name(self, metric: str | None) -> str:
        """What readers see for a metric: `words_of` it, if the table has no other name."""
        return self.names.get(metric, words_of(metric)) if metric else "value"

    def unit_of(self, metric: str | None) -> Unit | None:
        """The unit that a metric's numbers are shown in."""
        return _of_metric(self.unit, metric, None)

    @property
    def kinds(self) -> set[str | None]:
        """Every kind of error that some metric shows."""
        return set(self.error.values()) if isinstance(self.error, Mapping) else {self.error}

    @property
    def uses_ground_truth(self) -> bool:
        """Whether any number comes from players that knew the right answer."""
        return any(cell.uses_ground_truth for row in self.rows for cell in row.cells)

    @property
    def unread(self) -> bool:
        """Whether it shows a number of a model of whose turns too few were parsed."""
        return any(cell.unread and cell.value is not None for row in self.rows for cell in row.cells)

    @property
    def heat(self) -> tuple[str | None, float, float] | None:
        """Of a heat map the metric, and the numbers that are palest and strongest: 0 and 1 of shares, else the least
        and the greatest; None without numbers."""
        known = [x for row in self.heat_cells() for x in row if x is not None]
        if not known:
            return None
        metric = self.columns[0].metric or self.rows[0].metric or next(iter(self.names), None)
        low, high = min(known), max(known)
        shares = self.unit_of(metric) == "percent" and low >= 0 and high <= 1
        return (metric, 0.0, 1.0) if shares else (metric, low, high)

    def heat_cells(self) -> list[list[float | None]]:
        """The numbers of a heat map: those of columns in the table's unit, not of shares or counts beside them."""
        drawn = [i for i, column in enumerate(self.columns) if column.form == "quantity"]
        return [[row.cells[i].value for i in drawn] for row in self.rows]

    def long(self) -> list[dict[str, Any]]:
        """Tidy rows, one a cell that is not blank: its labels, metric, value, stderr, n, failed, missing, overall,
        published; low and high in a table that asks for intervals, std in one that asks for standard deviations (None
        where they do not belong to the row's metric), uses_ground_truth and unread in one that has such numbers, group
        (how it weighs its rows, None for other rows) in one with groups. In a table of tests or effects the label
        `statistic` says what value is.

        A figure's rows also say where the number is drawn: `panel`, `x`, `series`. The last row label is x, those
        before it make panels. Texts among them are what readers see.
        """
        omitted = self._omitted | {"blank"} | (set() if "interval" in self.kinds else {"low", "high"})
        tidy, has_groups = [], self.has_groups
        for row in self.rows:
            for column, cell in zip(self.columns, row.cells, strict=True):
                if cell.blank:
                    continue
                labels = {k: v for k, v in {**row.key, **column.key}.items() if k != "metric"}
                if self.is_data:
                    series, x = " / ".join(filter(None, column.names)), list(row.key.values())[-1]
                    x = row.names[-1] if isinstance(x, str) else x
                    labels |= {"panel": " / ".join(row.names[:-1]), "x": x, "series": series}
                numbers = {key: value for key, value in asdict(cell).items() if key not in omitted}
                origin = {"overall": column.overall, "published": row.published}
                origin |= {"group": row.group} if has_groups else {}
                tidy.append({**labels, "metric": column.metric or row.metric, **numbers, **origin})
        return tidy

    def to_json(self) -> dict[str, Any]:
        """The whole table as a JSON object; its cells have `std` if the table asks for it, and `uses_ground_truth` and
        `unread` if any does."""
        document, omitted = {"schema": SCHEMA, **asdict(self)}, self._omitted
        for row in document["rows"]:
            if not self.has_groups:
                del row["group"]
            row["cells"] = [{k: v for k, v in cell.items() if k not in omitted} for cell in row["cells"]]
        return document

    @property
    def has_groups(self) -> bool:
        """Whether some rows stand for several others; these come last."""
        return any(row.group for row in self.rows)

    @property
    def _omitted(self) -> set[str]:
        """The fields of cells that mean nothing in this table."""
        cells = [cell for row in self.rows for cell in row.cells]
        marks = ("uses_ground_truth", "unread", "best", "blank", "beyond")
        unused = {mark for mark in marks if not any(getattr(cell, mark) for cell in cells)}
        unused |= FOR_NOTES
        return unused if "std" in self.kinds else unused | {"std"}
