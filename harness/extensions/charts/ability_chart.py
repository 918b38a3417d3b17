"""How much is solved as tasks grow, a curve per model, and the size at which each solves half."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness.api.errors import DataError
from harness.extensions.ability.ability_table import AbilityTable, Curve, about, curves, first_ability
from harness.extensions.charts.style import compact, guide, in_unit, label, labels, legend, look
from harness.tables.axis import Axis, meets

from .chart import Chart
from .sources import ChartOptions, Material

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POINTS = 60
"""Of a drawn curve."""


def ability(material: Material, choice: ChartOptions) -> Chart:
    """The chart. Raises `DataError` if the spec has no table with `ability:`, or nothing has a curve."""
    table = first_ability(material.sources[0].run.tables)
    if table is None or not isinstance(table.kind, AbilityTable):
        hint = "A table with `ability: {over: LABEL}` says it; --kind scaling draws means against any numeric label."
        raise DataError("no ability: the spec does not say by which number its tasks grow", hint=hint)
    kind, by = table.kind, choice.by or "model"
    if choice.by is not None:
        material.way(by)
    if by == kind.over:
        raise DataError(f"{by!r} is along the axis and makes no lines", hint="Choose another label with --by.")
    table = replace(table, rows=(by,) if by == "model" else ("model", by), cells=(choice.metric or table.cells[0],))
    scores = material.scores
    for key in table.added:
        scores = [replace(score, labels=key.relabelled(score.labels)) for score in scores]
    scores = [score for score in scores if meets(score.labels, table.where)]
    axis = Axis(table.rows, table)
    found = {_name(axis, curve): curve for curve in curves(table, scores, axis) if curve.posterior is not None}
    if not found:
        raise DataError(f"no curve: {kind.over} has numbers at fewer than two values")
    over, rows = axis.title(kind.over), [_row(name, curve) for name, curve in found.items()]

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        guide(axes)
        names = labels(found)
        for i, curve in enumerate(found.values()):
            _draw(axes, curve, names[i], look(i), faint=len(found) > 4)
        sizes = sorted({size for curve in found.values() for size in curve.levels})
        axes.set_xscale("log", base=2)
        shown = sizes if len(sizes) <= 8 else sizes[:: -(-len(sizes) // 8)]
        axes.set_xticks(shown, [compact(size) for size in shown])
        axes.minorticks_off()
        axes.axhline((1 + kind.floor) / 2, color="gray", linewidth=0.6, linestyle=":")
        axes.set_ylim(-0.03, 1.03)
        in_unit(axes, "percent")
        axes.set_xlabel(label(over))
        axes.set_ylabel(label(axis.title(table.cells[0])))
        if len(found) > 1:
            legend(axes, names)
        else:
            axes.set_title(names[0], loc="left")

    episodes = sum(len(curve.observed) for curve in found.values())
    text = (
        f"{about(table, kind)} Points: shares of the episodes played; bands: 95 %; bars: the interval of the size "
        f"solved by half; {episodes:,} episodes."
    )
    columns = (axis.title(by), f"{over} solved by half", "beyond", "95 % from", "to", "n")
    return Chart("ability", f"{over} solved by half", text, columns, tuple(rows), paint)


def _name(axis: Axis, curve: Curve) -> str:
    return ", ".join(map(axis.title, curve.key))


def _row(name: str, curve: Curve) -> tuple[Any, ...]:
    cell = curve.cell
    return name, cell.value, cell.beyond or "", cell.low, cell.high, cell.n


def _draw(axes: Any, curve: Curve, name: str, style: dict[str, Any], faint: bool) -> None:
    """One model: its curve with a band, the shares behind it, and the interval of the size."""
    import numpy as np

    assert curve.posterior is not None
    color = style["color"]
    sizes = np.geomspace(curve.levels[0], curve.levels[-1], _POINTS)
    low, mean, high = zip(*curve.posterior.band(list(map(float, sizes))), strict=True)
    axes.plot(sizes, mean, color=color)
    axes.fill_between(sizes, low, high, color=color, alpha=0.06 if faint else 0.2, linewidth=0)
    shares: dict[int, list[float]] = {}
    for level, solved, _ in curve.observed:
        shares.setdefault(level, []).append(solved)
    places = sorted(shares)
    means = [sum(shares[level]) / len(shares[level]) for level in places]
    axes.plot([curve.levels[level] for level in places], means, label=name, linestyle="none", **style)
    cell = curve.cell
    if cell.beyond is None and cell.low is not None:
        height = (1 + curve.posterior.floor) / 2
        axes.plot([cell.low, cell.high], [height, height], color=color, linewidth=2.5, solid_capstyle="butt")
