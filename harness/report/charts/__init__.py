"""Charts of runs: scaling, cost and quality, failures, who talks to whom, a network's answers, calibration.

Every kind is a function from runs to a `Chart`: the data as a table, a sentence, and how to paint it. matplotlib (extra
`plots`) is imported only where one is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from harness.errors import DataError, UserError
from harness.report.style import inline, styled, write

from .calibration import calibration
from .chart import Chart
from .failures import failures
from .heatmap import heatmap
from .network import network
from .pareto import pareto
from .scaling import scaling
from .sources import ChartOptions, ChartRun, Material
from .tokens import tokens

KINDS: Final[dict[str, Callable[[Material, ChartOptions], Chart]]] = {
    "scaling": scaling,
    "pareto": pareto,
    "failures": failures,
    "tokens": tokens,
    "heatmap": heatmap,
    "network": network,
    "calibration": calibration,
}

__all__ = ["KINDS", "Chart", "ChartOptions", "ChartRun", "Material", "chart", "inline", "plot", "styled"]


def chart(kind: str, material: Material, choice: ChartOptions) -> Chart:
    """The data of a chart of a kind.

    Raises:
        DataError: where the runs have no data for it; the error names the kinds that they have.
    """
    try:
        return KINDS[kind](material.only(choice.condition), choice)
    except DataError as error:
        if error.place or choice != ChartOptions():
            raise
        possible = ", ".join(other for other in KINDS if other != kind and _possible(other, material))
        hint = f"{error.hint} " if error.hint else ""
        raise DataError(error.message, hint=f"{hint}The kinds that have data: {possible or 'none'}.") from None


def _possible(kind: str, material: Material) -> bool:
    try:
        KINDS[kind](material, ChartOptions())
    except UserError:
        return False
    return True


def plot(kind: str, material: Material, choice: ChartOptions, path: Path) -> Chart:
    """Draw a chart into a file: svg, png or pdf by its suffix. Raises as `chart`, `styled` and `write`."""
    with styled():
        done = chart(kind, material, choice)
        write(done.figure(), path)
    return done
