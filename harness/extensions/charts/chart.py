"""A chart before it is drawn: its data as a table, its message in a sentence, and the function that draws it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.extensions.charts.style import in_unit
from harness.tables.table import Units

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Cells = tuple[Any, ...]


@dataclass(frozen=True)
class Chart:
    """One figure.

    Attributes:
        kind: which kind of chart.
        title: its heading.
        about: what is drawn and what was chosen, in a sentence or two; a screen reader says it in the chart's place.
        columns, rows: the numbers behind it.
        height, width: inches.
        paint: draws it into an empty figure.
    """

    kind: str
    title: str
    about: str
    columns: tuple[str, ...]
    rows: tuple[Cells, ...]
    paint: Callable[[Figure], None]
    height: float = 2.6
    width: float = 3.5

    def figure(self) -> Figure:
        """The figure; within `harness.extensions.charts.style.styled`."""
        from harness.extensions.charts.style import blank

        figure = blank(self.height, self.width)
        self.paint(figure)
        return figure


def unit_interval(axis: Axes, bounds: tuple[float, float], unit: Units = None) -> None:
    """The y axis of a metric: from 0 to 1 where it cannot leave that, else from 0 where nothing is below.

    Its numbers have the unit that tables show: percent, thousands.
    """
    in_unit(axis, unit)
    if bounds == (0, 1):
        axis.set_ylim(-0.03, 1.03)
    elif axis.get_ylim()[0] > 0 or bounds[0] == 0:
        axis.set_ylim(bottom=0)
