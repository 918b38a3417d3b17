"""A finished table as plain data, and the published figures that may stand beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

SCHEMA: Final = 1
"""Version of every JSON document that `harness.tables` writes."""

Figure = Literal["bar", "line", "stacked"]
ErrorKind = Literal["sem", "std", "t", "wilson"]
ErrorStyle = Literal["parentheses", "plus_minus"]
Unit = Literal["thousands", "percent"]


def text(value: Any) -> str:
    """A label's value as the text it is compared and shown by: 4 and "4" are one value; None is "–"."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


@dataclass(frozen=True, slots=True)
class Cell:
    """One number of a table.

    Attributes:
        value: None where there is nothing to show.
        stderr: standard error of the value; None if unknown.
        n: observations behind the value; None where a publication does not say.
        failed: episodes with an error; they count in no value.
        missing: episodes without error that have no number, and planned ones that never ran.
        std: population standard deviation (ddof = 0), if the table asks for it.
        low, high: 95 % interval, Wilson's or Student's t, if the table asks for one.
        error: which of these stands beside the value.
    """

    value: float | None = None
    stderr: float | None = None
    n: int | None = 0
    failed: int = 0
    missing: int = 0
    std: float | None = None
    low: float | None = None
    high: float | None = None
    error: ErrorKind | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """`key` maps the table's column labels to values, `names` shows them level by level ("" for an empty level)."""

    key: Mapping[str, Any]
    names: tuple[str, ...]
    metric: str | None = None
    overall: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """`key` maps the table's row labels to values; `published` names the source of figures that were not run here."""

    key: Mapping[str, Any]
    names: tuple[str, ...]
    cells: tuple[Cell, ...]
    metric: str | None = None
    published: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows × columns of cells, with everything a renderer needs and nothing rendered."""

    title: str
    row_labels: tuple[str, ...]
    column_labels: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    row_names: tuple[str, ...] = ()
    error_style: ErrorStyle = "parentheses"
    digits: int = 2
    unit: Unit | None = None
    figure: Figure | None = None
    notes: tuple[str, ...] = ()

    def long(self) -> list[dict[str, Any]]:
        """Tidy rows, one a cell: its labels, metric, value, stderr, n, failed, missing, overall, published; std,
        low and high where they were asked for.

        A figure's rows also say where the number is drawn: `panel`, `x`, `series`. The last row label is x, those
        before it make panels.
        """
        beside = {cell.error for row in self.rows for cell in row.cells}
        unasked = {
            "std": "std" not in beside,
            "low": not beside & {"t", "wilson"},
            "high": not beside & {"t", "wilson"},
            "error": True,
        }
        return [
            self._tidy(row, column, cell, {name for name, left_out in unasked.items() if left_out})
            for row in self.rows
            for column, cell in zip(self.columns, row.cells, strict=True)
        ]

    def _tidy(self, row: Row, column: Column, cell: Cell, unasked: set[str]) -> dict[str, Any]:
        labels = {k: v for k, v in {**row.key, **column.key}.items() if k != "metric"}
        drawn: dict[str, Any] = {}
        if self.figure:
            series = " / ".join(filter(None, column.names))
            drawn = {"panel": " / ".join(row.names[:-1]), "x": list(row.key.values())[-1], "series": series}
        numbers = {name: x for name, x in asdict(cell).items() if name not in unasked}
        origin = {"overall": column.overall, "published": row.published}
        return {**labels, **drawn, "metric": column.metric or row.metric, **numbers, **origin}

    def to_json(self) -> dict[str, Any]:
        """The whole table as a JSON object."""
        return {"schema": SCHEMA, **asdict(self)}


@dataclass(frozen=True, slots=True)
class Record:
    """One published figure. `overall` marks the figure of a row's summary column."""

    labels: Mapping[str, Any]
    metric: str
    value: float
    stderr: float | None = None
    n: int | None = None
    overall: bool = False
    std: float | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """One published table.

    Attributes:
        id: what a spec's `published:` names, e.g. "agentsnet/table2".
        source: publication and table, e.g. "AgentsNet, Table 2".
        covers: label → the values its figures were averaged over; where a run differs, the table says so.
        warnings: what a reader must know before comparing.
    """

    id: str
    source: str
    title: str
    records: tuple[Record, ...]
    covers: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
