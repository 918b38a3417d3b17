"""Charts of runs: scaling, cost and quality, failures, who talks to whom, calibration.

Every kind is a function from runs to a `Chart`: the data as a table, a sentence, and how to paint it. matplotlib (extra
`plots`) is imported only where one is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.api.errors import DataError, UserError
from harness.extensions.charts.style import inline, styled, write
from harness.plugins.manifests import offers

from .chart import Chart
from .sources import ChartOptions, ChartRun, Material

__all__ = ["Chart", "ChartOptions", "ChartRun", "Material", "chart", "inline", "kinds", "plot", "styled"]

Maker = Callable[[Material, ChartOptions], Chart]


def kinds() -> dict[str, Maker]:
    """Name → what makes a chart of that kind, of all extensions."""
    return {name: offer.load_function() for name, offer in offers("charts").items()}


def chart(kind: str, material: Material, choice: ChartOptions) -> Chart:
    """The data of a chart of a kind.

    Raises:
        DataError: where the runs have no data for it; the error names the kinds that they have.
    """
    try:
        return kinds()[kind](material.only(choice.condition), choice)
    except DataError as error:
        if error.place or choice != ChartOptions():
            raise
        possible = ", ".join(other for other in kinds() if other != kind and _possible(other, material))
        hint = f"{error.hint} " if error.hint else ""
        raise DataError(error.message, hint=f"{hint}The kinds that have data: {possible or 'none'}.") from None


def _possible(kind: str, material: Material) -> bool:
    try:
        kinds()[kind](material, ChartOptions())
    except UserError:
        return False
    return True


def plot(kind: str, material: Material, choice: ChartOptions, path: Path) -> Chart:
    """Draw a chart into a file: svg, png or pdf by its suffix. Raises as `chart`, `styled` and `write`."""
    with styled():
        done = chart(kind, material, choice)
        write(done.figure(), path)
    return done
