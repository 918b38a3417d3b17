"""The one number that represents a run, as exports name it."""

from __future__ import annotations

from harness.evaluation.run import Run
from harness.tables import Cell


def headline_cell(run: Run) -> Cell | None:
    """The run's headline; None if it has no value."""
    if not run.metrics:
        return None
    cell = run.headline.cell(run.scores)
    return None if cell.value is None else cell


def metrics_of(run: Run) -> list[str]:
    """The names of the run's metrics, that of the headline first."""
    first = [run.headline.metric] if run.metrics else []
    return [*first, *(name for name in run.metrics if name not in first)]
