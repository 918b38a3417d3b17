"""A chart: `harness plot RUN --kind decay` draws how loud each episode was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.api import DataError
from harness.extensions.charts.chart import Chart
from harness.extensions.charts.sources import ChartOptions, Material

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def decay(material: Material, choice: ChartOptions) -> Chart:
    """The chart. Raises `DataError` if no episode was loud."""
    numbers = [number for score in material.scores if (number := score.number("loudness")) is not None]
    if not numbers:
        raise DataError("no episode has a loudness", hint="Give --echo to `harness eval`.")

    def paint(figure: Figure) -> None:
        axis = figure.subplots()
        axis.plot(range(1, len(numbers) + 1), numbers, marker="o")
        axis.set_xlabel("Episode")
        axis.set_ylabel("Loudness")

    rows = tuple((str(place), number) for place, number in enumerate(numbers, 1))
    return Chart("decay", "Loudness", "How loud each episode was.", ("episode", "loudness"), rows, paint)
