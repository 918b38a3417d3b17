"""What quality costs, how it scales, how episodes ended: the data of `harness plot`, drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from harness.api.errors import UserError
from harness.extensions.analysis.section import Section
from harness.extensions.charts import Chart, ChartOptions, kinds
from harness.extensions.charts.failures import COLORS
from harness.extensions.charts.plot_command import material
from harness.extensions.charts.style import labels
from harness.tables import Unit, text

from . import drawings
from .drawings import Mark, Plot, PlotAxis

_BARS: Final = 40
"""So many models have a bar: `failures` counts no more."""
_LINES: Final = 6
"""So many lines are in color, those of the models that are ahead."""
_NAME: Final = 20
"""Characters of a name in a picture."""
_SHOWN: Final = ("pareto", "scaling", "failures")


@dataclass(frozen=True)
class Drawn:
    """A chart on a page.

    Attributes:
        kind, title, about: as `harness.extensions.charts.Chart` has them.
        columns, rows: its numbers.
        plot: the picture of points or lines; None of bars.
        bars: a row's shares of the bar, for each kind of ending.
        note: which models are left out.
    """

    kind: str
    title: str
    about: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    plot: Plot | None = None
    bars: Sequence[Sequence[tuple[str, float, float]]] = ()
    note: str = ""


def charts(section: Section) -> list[Drawn]:
    """The charts that the runs have data for. Raises `DataError` where a journal is damaged."""
    played = material([run for _, run in section.runs], [scores for scores, _ in section.runs])
    _ = played.tallies  # a damaged journal is not one that has no data
    ranked = [row.model for row in section.board.rows if row.source is None]
    first, found = {*ranked[:_BARS]}, []
    for kind in _SHOWN:
        shown, note = played, ""
        if kind == "failures" and len(played.models) > _BARS:
            shown = played.where(lambda score: score.model in first)
            note = f"The first {_BARS} of {len(played.models)} models."
        try:
            chart = kinds()[kind](shown, ChartOptions())
        except UserError:  # there is no data for this kind: then there is no such chart
            continue
        found.append(_drawn(chart, section, ranked, note))
    return found


def _drawn(chart: Chart, section: Section, ranked: Sequence[str], note: str) -> Drawn:
    unit = section.board.headline.table.unit
    unit = unit if isinstance(unit, str) else None
    if chart.kind == "failures":
        bars = [_bar(chart.columns[2:], row) for row in chart.rows]
        return Drawn(chart.kind, chart.title, chart.about, chart.columns, chart.rows, bars=bars, note=note)
    draw = _pareto if chart.kind == "pareto" else _scaling
    plot = draw(chart, unit, {name: i for i, name in enumerate(ranked)})
    about = chart.about.replace("bands are", "upright lines are")
    return Drawn(chart.kind, chart.title, about, chart.columns, chart.rows, plot, note=note)


def _bar(kinds_: Sequence[str], row: Sequence[Any]) -> list[tuple[str, float, float]]:
    """(kind of ending as a class of CSS, from where, how wide) of each part of a bar of 100."""
    parts, at = [], 0.0
    for kind, count in zip(kinds_, row[2:], strict=True):
        share = 100 * count / max(1, row[1])
        if count:
            parts.append((ENDINGS[kind], round(at, 2), round(share, 2)))
        at += share
    return parts


ENDINGS: Final[Mapping[str, str]] = {kind: f"e{i}" for i, kind in enumerate(COLORS)}
"""How an episode ended → its class of CSS."""


def _pareto(chart: Chart, unit: Unit | None, order: Mapping[str, int]) -> Plot:
    x_axis, y_axis = drawings.axes(
        [row[1] for row in chart.rows], [x for row in chart.rows for x in row[2:5]], unit == "percent", drawings.WIDE
    )
    rows = sorted(chart.rows, key=lambda row: (row[6] != "yes", order.get(text(row[0]), len(order))))
    short = labels([text(row[0]) for row in rows], _NAME)
    places = [(name, x_axis(row[1]), y_axis(row[2])) for name, row in zip(short, rows, strict=True)]
    few = len(rows) <= 12
    stairs = sorted({(x, y) for (_, x, y), row in zip(places, rows, strict=True) if row[6] == "yes"})
    path = "".join(f"H{x:g}V{y:g}" if i else f"M{x:g} {y:g}" for i, (x, y) in enumerate(stairs))
    lines = [
        box
        for (x, y), (end, top) in pairwise(stairs)
        for box in ((x, y - 1, end, y + 1), (end - 1, min(y, top), end + 1, max(y, top)))
    ]
    lines += [(x - 5, y - 5, x + 5, y + 5) for _, x, y in places]
    lines += [(x - 1, y_axis(row[4]), x + 1, y_axis(row[3])) for row, (_, x, _) in zip(rows, places, strict=True)]
    named = [place for place, row in zip(places, rows, strict=True) if few or row[6] == "yes"]
    names = drawings.placed_names(named, drawings.WIDE, lines)
    names += [None] * (len(rows) - len(names))
    marks = [
        Mark(text(row[0]), (x, y), [(x, y_axis(row[3]), y_axis(row[4]))], (), 0 if row[6] == "yes" else None, label)
        for row, (_, x, y), label in zip(rows, places, names, strict=True)
    ]
    return Plot(*_axes(chart, x_axis, y_axis, None, unit), marks, drawings.WIDE, path)


def _scaling(chart: Chart, unit: Unit | None, order: Mapping[str, int]) -> Plot:
    lines: dict[str, list[Sequence[Any]]] = {}
    for row in chart.rows:
        lines.setdefault(text(row[0]), []).append(row)
    x_axis, y_axis = drawings.axes(
        [row[1] for row in chart.rows], [x for row in chart.rows for x in row[2:5]], unit == "percent", drawings.NARROW
    )
    ranked = sorted(lines, key=lambda name: order.get(name, len(order)))
    colored, short = ranked[:_LINES], labels(ranked[:_LINES], _NAME)
    ends = drawings.apart([y_axis(lines[name][-1][2]) for name in colored], 15, drawings.TOP, drawings.BOTTOM)
    marks = []
    for i, name in reversed([*enumerate(ranked)]):  # those that are ahead lie on top
        path = [(x_axis(row[1]), y_axis(row[2])) for row in lines[name]]
        if i >= _LINES:
            marks.append(Mark(name, path[-1], (), path))
            continue
        bars = [(x_axis(row[1]), y_axis(row[3]), y_axis(row[4])) for row in lines[name] if row[3] is not None]
        marks.append(Mark(short[i], path[-1], bars, path, i, (drawings.NARROW + 10.0, ends[i] + 4, "start")))
    return Plot(*_axes(chart, x_axis, y_axis, sorted({row[1] for row in chart.rows}), unit), marks, drawings.NARROW)


def _axes(
    chart: Chart, x: drawings.Scale, y: drawings.Scale, places: Sequence[float] | None, unit: Unit | None
) -> tuple[PlotAxis, PlotAxis]:
    """The titles and ticks of both axes; `places`: where x has ticks, if they are few."""
    along = [(place, x(place)) for place in places] if places is not None and len(places) <= 8 else x.ticks()
    return (
        PlotAxis(chart.columns[1], _ticks(along, None)),
        PlotAxis(chart.columns[2], _ticks(y.ticks(), unit)),
    )


def _ticks(found: Sequence[tuple[float, float]], unit: Unit | None) -> list[tuple[str, float]]:
    texts = drawings.shown([number for number, _ in found], unit)
    return [(text, place) for text, (_, place) in zip(texts, found, strict=True)]
