"""The cells of a table as texts: numbers as a reader sees them, and the grid that all formats lay out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from harness.api.printable import clean_name, shortened
from harness.tables import (
    SIMULATED,
    SIMULATED_NAME,
    UNREAD,
    Cell,
    Column,
    ErrorKind,
    NumberForm,
    Row,
    Table,
    Unit,
    error_of,
    text,
)

from .layout import Grid

NOTHING: Final = "–"


SEPARATED: Final = 1_000
"""From this number on thousands are separated: 104,373,000."""


FACTORS: Final[dict[Unit | None, tuple[float, str]]] = {"thousands": (1e-3, "K"), "percent": (100, "%"), None: (1, "")}
"""Unit → what numbers are multiplied by, what follows them."""


def cell_text(cell: Cell, kind: ErrorKind | None, table: Table, metric: str | None = None) -> str:
    """A cell as a reader sees it: `0.67 (0.17)`, `0.67 ± 0.17`, `0.67 [0.35, 0.88]`, `35.1K`, `> 64`, `≥ 0.25`, or
    `–`."""

    value = number(cell.value, table, metric)
    if cell.beyond == "least" and value != NOTHING:
        return f"≥ {value}"
    if cell.beyond is not None and value != NOTHING:
        return f"{'>' if cell.beyond == 'above' else '<'} {cell.value:g}"
    if value == NOTHING or kind is None:
        return value
    if kind == "interval":
        low, high = (number(end, table, metric) for end in (cell.low, cell.high))
        return f"{value} [{low}, {high}]" if cell.low is not None else value
    error = number(cell.std if kind == "std" else cell.stderr, table, metric)
    return f"{value} ± {error}" if table.error_style == "plus_minus" else f"{value} ({error})"


def number(x: float | None, table: Table, metric: str | None = None) -> str:
    """A number in the unit and with the decimals that the table has for a metric; from 1,000 on with separators."""
    return _written(x, table.unit_of(metric), table.decimals(metric))


def _written(x: float | None, unit: Unit | None, digits: int) -> str:
    if x is None or not math.isfinite(x):
        return NOTHING
    factor, suffix = FACTORS[unit]
    rounded = f"{x * factor:.{digits}f}"
    if abs(float(rounded)) >= SEPARATED:
        rounded = f"{x * factor:,.{digits}f}"
    elif float(rounded) == 0:
        rounded = rounded.lstrip("-")
    return rounded + suffix


def statistic(x: float | None, form: NumberForm, table: Table, metric: str | None = None) -> str:
    """A statistic, which has no unit: `-2.31`, the count `75`, the p-value `0.024` or `<0.001`, the share `2.1%`."""
    if x is None or not math.isfinite(x):
        return NOTHING
    if form == "share":
        return f"{100 * x:.1f}%"
    if form == "pvalue":
        return "<0.001" if x < 0.001 else f"{x:.3f}"
    return f"{x:.0f}" if form == "count" else _written(x, None, table.decimals(metric))


def _ranged(cell: Cell, form: NumberForm) -> str:
    """A number with its interval, `1523 [1480, 1566]`, or the ranks that are possible, `1–2`."""
    value, low, high = (NOTHING if x is None else f"{x:.0f}" for x in (cell.value, cell.low, cell.high))
    if cell.value is None or (cell.low is None and cell.high is None):
        return value
    if form == "rank":
        return low if low == high else f"{low}–{high}"
    return f"{value} [{low}, {high}]"


def grid(table: Table) -> Grid:
    """The table's texts, cleaned of control characters; of a figure its tidy rows."""
    if table.is_data:
        return _tidy_grid(table)
    depth = max(len(table.column_labels), 1)
    header = [("",) * (depth - 1) + (name,) for name in table.row_names]
    header += [column.names for column in table.columns]
    body = []
    for row in table.rows:
        names = _names(row, table)
        cells = zip(table.columns, row.cells, strict=True)
        body.append(names + [_marked_cell(column, row, cell, table) for column, cell in cells])
    best = {
        (i, len(table.row_names) + j) for i, row in enumerate(table.rows) for j, c in enumerate(row.cells) if c.best
    }
    groups = sum(row.group is not None for row in table.rows)
    texts = Grid(header, body, len(table.row_names), frozenset(best), groups).map(clean_name)
    return _short_names(texts) if table.columns else texts  # the texts of a table without numbers are what it says


def _short_names(texts: Grid) -> Grid:
    """The grid with long names cut; those of rows and columns stay distinct."""
    cuts = [shortened(row[i] for row in texts.body) for i in range(texts.names)]
    body = [[*(cuts[i][row[i]] for i in range(texts.names)), *row[texts.names :]] for row in texts.body]
    levels = shortened(level for names in texts.header for level in names)
    return replace(texts, header=[tuple(levels[x] for x in names) for names in texts.header], body=body)


def _names(row: Row, table: Table) -> list[str]:
    """A row's names, with what must be said of its numbers; no renaming takes the word from a simulated model."""
    names = list(row.names)
    if row.uses_ground_truth and "model" in table.row_labels:
        place = table.row_labels.index("model")
        names[place] += "" if SIMULATED_NAME in names[place] else f" ({SIMULATED_NAME})"
    if names:
        marked = 1 if table.row_labels[0] == "rank" else 0
        names[marked] += (" †" if row.published else "") + (f" {SIMULATED}" if row.uses_ground_truth else "")
        names[marked] += f" {UNREAD}" if row.unread else ""
    return names


def _marked_cell(column: Column, row: Row, cell: Cell, table: Table) -> str:
    if cell.blank:
        return ""
    mark = f" {SIMULATED}" if cell.uses_ground_truth and not row.uses_ground_truth else ""
    mark += f" {UNREAD}" if cell.unread and cell.value is not None and not row.unread else ""
    if column.form in ("interval", "rank"):
        return _ranged(cell, column.form) + mark
    if column.form != "quantity":
        return statistic(cell.value, column.form, table, row.metric) + mark
    metric = column.metric or row.metric
    cell = replace(cell, stderr=None) if cell.equal and not row.published else cell  # papers stand as printed
    return cell_text(cell, error_of(table.error, metric), table, metric) + mark


def _tidy_grid(table: Table) -> Grid:
    tidy = table.long()
    metrics = {row["metric"]: None for row in tidy}
    heads = {
        "panel": " / ".join(table.row_names[:-1]),
        "x": next(reversed(table.row_names), ""),
        "series": " / ".join(table.names.get(label, label) for label in table.column_labels),
        "value": table.metric_name(next(iter(metrics))) if len(metrics) == 1 else "value",
        "stderr": "standard error",
        "low": "95 % from",
        "high": "to",
        "std": "standard deviation",
    }
    measures = ["value", "stderr"]
    measures += ["low", "high"] if "interval" in table.kinds else []
    measures += ["std"] if "std" in table.kinds else []
    names = ["panel", "x", "series"] if any(row["panel"] for row in tidy) else ["x", "series"]
    body = []
    for row in tidy:
        if not row["published"] and Cell(row["value"], row["stderr"], row["n"]).equal:
            row["stderr"] = None
        places = [text(row[name]) + (marks(row) if name == "x" else "") for name in names]
        counts = [text(row["n"]), text(row["failed"])]
        body.append([*places, *(number(row[name], table, row["metric"]) for name in measures), *counts])
    header = [(heads[name] or name,) for name in (*names, *measures)]
    return Grid([*header, ("n",), ("failed",)], body, len(names)).map(clean_name)


def marks(row: Mapping[str, Any]) -> str:
    """What follows the name of a tidy row: published and not run here, simulated, of a model that was not read."""
    marks = {" †": row["published"], f" {SIMULATED}": row.get("uses_ground_truth"), f" {UNREAD}": row.get("unread")}
    return "".join(mark for mark, holds in marks.items() if holds)


def tabulated(texts: Grid, form: str) -> str:
    """The grid in a format of the package tabulate."""
    from tabulate import SEPARATING_LINE, tabulate

    titles = [" / ".join(filter(None, levels)) for levels in texts.header]
    align = ["left"] * texts.names + ["right"] * (len(titles) - texts.names)
    body: list[Any] = [*texts.body]
    if texts.groups and form != "pipe":  # Markdown has no line inside a table
        body.insert(len(body) - texts.groups, SEPARATING_LINE)
    return tabulate(body, titles, tablefmt=form, disable_numparse=True, colalign=align if texts.body else None)
