"""Figure data drawn with matplotlib (extra `plots`): bars, lines with error bars, stacked bars, heat maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.api.errors import DataError
from harness.api.printable import clean_name
from harness.extensions.charts.style import PALETTE, WIDTH, blank, in_unit, labels, styled, write
from harness.report.grid import marks, number
from harness.tables import SIMULATED, UNREAD, Table, error_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_Tidy = Sequence[dict[str, Any]]
_TICKS = 10
_NUMBERED = 16
"""Up to so many columns of a heat map have their numbers in the cells."""
_MAX_TICK_CHARS = 22
_SHADES = ("#f3f6fa", "#6baed6", "#08306b")


def draw(table: Table, path: Path | None = None) -> Figure:
    """Draw a table whose entry says `figure:`; one panel for each value of its row labels but the last.

    Args:
        table: "bar" puts series side by side, "line" joins points over a numeric or named x, "stacked" stacks bars
            (AgentsNet, Figure 4), "heat" colors the cells of the table. Error bars are those of the entry's
            `uncertainty`, else standard errors, if they are known. Cells without a value are left out.
        path: the file to write; the suffix (.png, .svg, .pdf) gives the format.

    Returns:
        A matplotlib figure that belongs to no window.

    Raises:
        SetupError: if matplotlib is not installed.
        DataError: if the table is not a figure, has nothing to draw, or cannot be written.
    """
    with styled():
        figure = _drawn(table)
        if path is not None:
            write(figure, path)
    return figure


def _drawn(table: Table) -> Figure:
    if table.figure == "heat":
        return _heat(table)
    tidy = [{**row, "bar": _bar(row, table)} for row in table.long() if row["value"] is not None]
    if not table.figure or not tidy:
        raise DataError(
            f"{table.title!r} has nothing to draw" if table.figure else f"{table.title!r} is a table, not a figure",
            hint=None if table.figure else "Say `figure: bar`, `line`, `stacked` or `heat` in its entry.",
        )
    panels = list(dict.fromkeys(row["panel"] for row in tidy))
    figure = blank(4, (1.5 + 0.5 * len(_ticks(tidy))) * len(panels) + 2)
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    paint = {"bar": _bars, "line": _lines, "stacked": _stack}[str(table.figure)]
    colors = {
        name: PALETTE[i % len(PALETTE)] for i, name in enumerate(_series(tidy))
    }  # a series looks the same in every panel
    for panel, axis in zip(panels, axes, strict=True):
        paint(axis, [row for row in tidy if row["panel"] == panel], colors)
        axis.set_title(clean_name(panel))
        axis.set_xlabel(clean_name(table.row_names[-1]))
    axes[0].set_ylabel(clean_name(table.metric_name(tidy[0]["metric"])))
    in_unit(axes[0], table.unit_of(tidy[0]["metric"]))
    if all(row["value"] >= row["bar"][0] for row in tidy):
        axes[0].set_ylim(bottom=0)
    handles = {name: handle for axis in axes for handle, name in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), fontsize="small", loc="outside right upper")
    figure.suptitle(_title(table), wrap=True)
    return figure


def _heat(table: Table) -> Figure:
    """Rows × columns in color, from light to dark; the numbers are in the cells where there is room."""
    from matplotlib.colors import LinearSegmentedColormap

    cells, columns = table.heat_cells(), [column for column in table.columns if column.form == "quantity"]
    if table.heat is None:
        raise DataError(f"{table.title!r} has nothing to draw")
    metric, low, high = table.heat
    across, down = len(columns), len(table.rows)
    figure = blank(max(2.4, 0.34 * down + 1.7), max(WIDTH, 0.46 * across + 2.2))
    axis = figure.subplots()
    shade = LinearSegmentedColormap.from_list("heat", _SHADES, 32)  # more would be an image in SVG
    numbers = [[float("nan") if x is None else x for x in line] for line in cells]
    tiles = axis.pcolormesh(numbers, cmap=shade, vmin=low, vmax=high, edgecolors="face", linewidth=0.2)
    bar = figure.colorbar(tiles, ax=axis, shrink=0.85)
    bar.outline.set_visible(False)
    bar.set_label(clean_name(table.metric_name(metric)))
    in_unit(bar.ax, table.unit_of(metric))
    axis.set_aspect("equal")
    axis.invert_yaxis()
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
    heads = labels([" / ".join(filter(None, column.names)) for column in columns], _MAX_TICK_CHARS)
    names = labels([" / ".join(row.names) + (" †" if row.published else "") for row in table.rows], _MAX_TICK_CHARS)
    axis.set_xticks([i + 0.5 for i in range(across)], heads, rotation=60, ha="right", rotation_mode="anchor")
    axis.set_yticks([i + 0.5 for i in range(down)], names)
    axis.set_ylabel(clean_name(" / ".join(table.row_names)))
    axis.set_xlabel(clean_name(" / ".join(table.names.get(label, label) for label in table.column_labels)))
    for i, line in enumerate(cells if across <= _NUMBERED else ()):
        for j, x in enumerate(line):
            if x is not None:
                dark = high > low and (x - low) / (high - low) > 0.55
                ink = "white" if dark else "black"
                axis.text(j + 0.5, i + 0.5, number(x, table, metric), ha="center", va="center", color=ink, fontsize=6)
    figure.suptitle(_title(table), wrap=True)
    return figure


def _title(table: Table) -> str:
    """The title, and below it what the marks of its numbers mean."""
    below = f"\n{SIMULATED} simulated" if table.uses_ground_truth else ""
    return clean_name(table.title) + below + (f"\n{UNREAD} too few turns were parsed" if table.unread else "")


def _ticks(tidy: _Tidy) -> list[str]:
    return list(dict.fromkeys(_tick(row) for row in tidy))


def _tick(row: dict[str, Any]) -> str:
    return clean_name(str(row["x"])) + marks(row)


def _series(tidy: _Tidy) -> dict[str, list[dict[str, Any]]]:
    series: dict[str, list[dict[str, Any]]] = {}
    for row in tidy:
        name = row["series"] + marks(row)
        series.setdefault(name, []).append(row)
    return series


def _name_ticks(axis: Axes, ticks: Sequence[str]) -> None:
    axis.set_xticks(range(len(ticks)), ticks, rotation=45, ha="right")


def _bars(axis: Axes, tidy: _Tidy, colors: Mapping[str, str]) -> None:
    ticks, series = _ticks(tidy), _series(tidy)
    width = 0.8 / len(series)
    for i, (name, rows) in enumerate(series.items()):
        places = [ticks.index(_tick(row)) + (i - (len(series) - 1) / 2) * width for row in rows]
        axis.bar(places, _values(rows), width, yerr=_errors(rows), color=colors[name], label=clean_name(name))
    _name_ticks(axis, ticks)


def _lines(axis: Axes, tidy: _Tidy, colors: Mapping[str, str]) -> None:
    numeric = all(isinstance(row["x"], int | float) and not isinstance(row["x"], bool) for row in tidy)
    ticks = _ticks(tidy)
    for name, rows in _series(tidy).items():
        places = [row["x"] if numeric else ticks.index(_tick(row)) for row in rows]
        label, color = clean_name(name), colors[name]
        axis.errorbar(places, _values(rows), yerr=_errors(rows), label=label, color=color, marker="o", capsize=2)
    if not numeric:
        _name_ticks(axis, ticks)
    elif len(ticks) <= _TICKS:
        axis.set_xticks(sorted({row["x"] for row in tidy}))


def _stack(axis: Axes, tidy: _Tidy, colors: Mapping[str, str]) -> None:
    ticks = _ticks(tidy)
    height = [0.0] * len(ticks)
    for name, rows in _series(tidy).items():
        places = [ticks.index(_tick(row)) for row in rows]
        below = [height[place] for place in places]
        axis.bar(places, _values(rows), bottom=below, color=colors[name], label=clean_name(name))
        for place, row in zip(places, rows, strict=True):
            height[place] += row["value"]
    _name_ticks(axis, ticks)


def _values(rows: _Tidy) -> list[float]:
    return [row["value"] for row in rows]


def _errors(rows: _Tidy) -> list[list[float]]:
    return [[row["bar"][side] for row in rows] for side in (0, 1)]


def _bar(row: dict[str, Any], table: Table) -> tuple[float, float]:
    """How far the error bar reaches below and above the value."""
    kind = error_of(table.error or "sem", row["metric"])
    if kind == "interval" and row["low"] is not None:
        return max(0.0, row["value"] - row["low"]), max(0.0, row["high"] - row["value"])
    reach = row["stderr"] if kind == "sem" else row["std"] if kind == "std" else None
    return reach or 0.0, reach or 0.0
