"""The headline against the size of the group, a line per model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.api.errors import DataError, near
from harness.extensions.charts.style import compact, guide, label, labels, legend, look, name_lines
from harness.report.grid import marks
from harness.tables import build
from harness.tables.headline import ARROWS
from harness.tables.scores import bounds_of

from .chart import Chart, unit_interval
from .sources import SIZES, ChartOptions, Material, numeric

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DIRECT = 4
_MAX_LABEL_CHARS = 16
_WIDE = 16


def scaling(material: Material, choice: ChartOptions) -> Chart:
    """The chart. Raises `DataError` if no numeric label varies."""
    x = _size(material, choice.x)
    headline = material.headline(choice.metric)
    material, unread = material.readable(headline)
    by = choice.by or "model"
    material.way(by)
    if by == x:
        raise DataError(f"{x!r} is along the axis and makes no lines", hint="Choose another label with --by.")
    table = build(headline.by(x, columns=(by,), figure="line"), material.scores, material.metrics)
    lines: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(table.long(), key=lambda row: float(row["x"])):
        if row["value"] is not None:
            name = material.shown(row["series"]) if by != "model" else row["series"]
            lines.setdefault(name + marks(row), []).append(row)
    if not any(len(line) > 1 for line in lines.values()):
        raise DataError(
            f"{headline.name} has numbers at fewer than two values of {x}: no line to draw.{unread}".rstrip(".")
        )
    axis_name = material.shown(x)
    episodes = sum(row["n"] or 0 for line in lines.values() for row in line)

    def paint(figure: Figure) -> None:
        axis = figure.subplots()
        guide(axis)
        names = labels(lines)
        for i, line in enumerate(lines.values()):
            xs, ys = [row["x"] for row in line], [row["value"] for row in line]
            low = [row["value"] if row["low"] is None else row["low"] for row in line]
            high = [row["value"] if row["high"] is None else row["high"] for row in line]
            axis.plot(xs, ys, label=names[i], **look(i))
            axis.fill_between(
                xs, low, high, color=look(i)["color"], alpha=0.2 if len(lines) <= _DIRECT else 0.06, linewidth=0
            )
        places = sorted({row["x"] for line in lines.values() for row in line})
        if places[0] > 0 and places[-1] / places[0] >= _WIDE:
            axis.set_xscale("log", base=2)
        if len(places) <= 8:
            axis.set_xticks(places, [compact(place) for place in places])
            axis.minorticks_off()
        unit_interval(
            axis, bounds_of(material.metrics[headline.metric], material.scores, headline.metric), headline.table.unit
        )
        axis.set_xlabel(label(axis_name))
        axis.set_ylabel(f"{label(headline.name)} {ARROWS[headline.better]}")
        ends = {line[-1]["x"] for line in lines.values()}
        if 1 < len(lines) <= _DIRECT and max(map(len, names)) <= _MAX_LABEL_CHARS and len(ends) == 1:
            last = [
                (line[-1]["value"], name, look(i)["color"])
                for i, (name, line) in enumerate(zip(names, lines.values(), strict=True))
            ]
            name_lines(axis, last, ends.pop())
        elif len(lines) > 1:
            legend(axis, names)
        else:
            axis.set_title(names[0], loc="left")

    return Chart(
        "scaling",
        f"{headline.name} by {axis_name}",
        f"{headline.name} against {axis_name}, {'a line' if len(lines) > 1 else 'one line'} "
        f"{'for each' if len(lines) > 1 else 'of'} {material.shown(by)}; "
        f"bands are 95 % intervals; {episodes:,} episodes.{unread}",
        (material.shown(by), axis_name, headline.name, "95 % from", "to", "n", "failed"),
        tuple(
            (name, row["x"], row["value"], row["low"], row["high"], row["n"], row["failed"])
            for name, line in lines.items()
            for row in line
        ),
        paint,
    )


def _size(material: Material, wanted: str | None) -> str:
    numbers = {name: values for name, values in material.labels.items() if numeric(values)}
    if wanted is not None:
        if wanted not in material.labels:
            raise DataError(f"no episode has the label {wanted!r}", hint=near(wanted, material.labels))
        if wanted not in numbers:
            found = ", ".join(label(value, 20) for value in material.labels[wanted][:4])
            hint = f"Numeric labels: {', '.join(numbers) or 'none'}."
            raise DataError(f"{wanted!r} is not several numbers: {found}", hint=hint)
        return wanted
    likely = next((name for name in (*SIZES, *material.swept) if name in numbers), None)
    if likely is not None:
        return likely
    others = f"--x can name another numeric label: {', '.join(numbers)}." if numbers else None
    raise DataError("no scaling: the group's size, or another number, is the same in all episodes", hint=others)
