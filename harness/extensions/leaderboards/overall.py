"""Who is ahead over all benchmarks: a row per model, a column per benchmark."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from harness.tables import SIMULATED, Cell, Column, HeadlineSpec, Row, Table

from .leaderboard import listed
from .standings import Role, Standing, Standings, best_of

Rows = Mapping[tuple[Role, str], Mapping[str, Standing]]
"""(role, model) → benchmark → its standing there."""


def overall(boards: Sequence[Standings]) -> Table:
    """All benchmarks on one page: a row per model, a column per benchmark, each with its own headline.

    The average is there where every benchmark is: of numbers between worst, 0, and best, 1, on the headline's scale;
    there is none where a headline has no scale. Its interval takes benchmarks as independent and fixed: it combines the
    distances from each number to the ends of its interval, squared, added, rooted, divided by how many there are (the
    method of variance estimates recovery; Zou and Donner, 2008). So it never leaves the scale, and a benchmark in which
    all episodes agree adds its own uncertainty.
    """
    models: dict[tuple[Role, str], dict[str, Standing]] = {}
    for board in boards:
        for row in (row for row in board.rows if row.source is None):
            if row.role == "model":
                models.setdefault((row.role, row.model), {})[board.name] = row
            if end := row.end or (row.role if row.role != "model" else None):
                models.setdefault((end, end.capitalize()), {})[board.name] = row
    averages = {key: _average(boards, cells) for key, cells in models.items()}
    averaged = len(boards) > 1 and any(cell.value is not None for cell in averages.values())
    columns = [
        Column(
            {"benchmark": board.name, "metric": board.headline.metric},
            (board.name + " (part)" * bool(board.part), board.headline.title),
            board.name,
        )
        for board in boards
    ]
    if averaged:
        columns.append(Column({}, ("Average ↑", ""), "average", overall=True))
    best = {board.name: best_of(board.headline, board.rows) for board in boards}
    means = [cell.value for (role, _), cell in averages.items() if role == "model" and cell.value is not None]
    top = max(means) if len(means) > 1 else None
    rows = []
    for role, model in sorted(models, key=lambda key: (key[0] != "model", _order(averages[key], models[key]), key[1])):
        own = models[role, model]
        cells = [
            replace(own[name].cell, best=role == "model" and own[name].cell.value == best[name])
            if name in own
            else Cell(n=0)
            for name in best
        ]
        if averaged:
            mean = averages[role, model]
            cells.append(replace(mean, best=role == "model" and mean.value is not None and mean.value == top))
        rows.append(Row({"model": model}, (model,), tuple(cells)))
    units = {board.name: board.headline.table.unit for board in boards}
    return Table(
        title="All benchmarks",
        row_labels=("model",),
        column_labels=("benchmark", "metric"),
        columns=tuple(columns),
        rows=tuple(rows),
        row_names=("Model",),
        error="interval",
        digits={**{board.name: board.headline.digits for board in boards}, "average": 1},
        unit={"average": "percent", **{name: unit for name, unit in units.items() if isinstance(unit, str)}},
        notes=tuple(_notes(boards, models, averaged)),
    )


def _order(average: Cell, cells: Mapping[str, Standing]) -> tuple[bool, float, int]:
    return average.value is None, -(average.value or 0), -len(cells)


def _average(boards: Sequence[Standings], cells: Mapping[str, Standing]) -> Cell:
    """The mean over all benchmarks; no value where one is lacking, no interval where one has none."""
    values, below, above = list[float](), list[float | None](), list[float | None]()
    for board in boards:
        scale, row = _scale(board.headline), cells.get(board.name)
        if scale is None or row is None or row.cell.value is None:
            return Cell(n=0)
        value, low, high = (_share(x, scale) for x in (row.cell.value, row.cell.low, row.cell.high))
        if board.headline.better == "lower":
            value, low, high = (None if x is None else 1 - x for x in (value, high, low))
        values.append(value or 0.0)
        below.append(None if low is None else values[-1] - low)
        above.append(None if high is None else high - values[-1])
    mean, simulated = statistics.fmean(values), any(row.cell.uses_ground_truth for row in cells.values())
    reach = [_combined(side) for side in (below, above)]
    if reach[0] is None or reach[1] is None:
        return Cell(mean, n=len(values), uses_ground_truth=simulated)
    low, high = max(0.0, mean - reach[0]), min(1.0, mean + reach[1])  # a sum may round beyond them
    return Cell(mean, n=len(values), low=low, high=high, uses_ground_truth=simulated)


def _scale(headline: HeadlineSpec) -> tuple[float, float] | None:
    """From where to where the number can lie: the metric's bounds, 0 to 1 in percent; None if that is unknown."""
    low, high = headline.metrics[headline.metric].bounds
    if math.isfinite(high - low):
        return low, high
    return (0.0, 1.0) if headline.table.unit == "percent" else None


def _share(x: float | None, scale: tuple[float, float]) -> float | None:
    low, high = scale
    return None if x is None else (x - low) / (high - low)


def _combined(distances: Sequence[float | None]) -> float | None:
    known = [x for x in distances if x is not None]
    return math.hypot(*known) / len(known) if len(known) == len(distances) else None


def _notes(boards: Sequence[Standings], models: Rows, averaged: bool) -> Iterable[str]:
    yield "Each benchmark by its own headline, with its 95 % interval. ↑: higher is better, ↓: lower is."
    if averaged:
        yield (
            "Average: mean over all benchmarks, from 0 % (worst) to 100 % (best; 100 % minus the value where lower is "
            "better), where a model has all of them. Its interval combines theirs (Zou and Donner, 2008), and takes "
            "benchmarks as independent and fixed; there is none where a benchmark has none."
        )
    elif len(boards) > 1 and any(_scale(board.headline) is None for board in boards):
        yield "No average: not every headline has a scale (bounds of its metric, or percent)."
    if any(row.cell.uses_ground_truth for cells in models.values() for row in cells.values()):
        yield f"{SIMULATED} simulated: players knew the right answer and gave it with a declared probability."
    if any(len(cells) < len(boards) for cells in models.values()):
        yield "–: not run."
    empty = [
        f"{model} in {name}" for (_, model), own in models.items() for name, r in own.items() if not _has_number(r)
    ]
    if empty:
        yield f"–, though run: {listed(empty)}: all episodes failed or have no number."
    if parts := [f"{board.name}: {board.part}" for board in boards if board.part]:
        yield f"Not the whole benchmark: {'; '.join(parts)}."
    yield from _run_twice(boards)
    yield from _samplings(boards)


def _has_number(row: Standing) -> bool:
    return row.cell.value is not None


def _run_twice(boards: Sequence[Standings]) -> Iterable[str]:
    """That a model that was run more than once has several rows."""
    several = [
        f"{model} in {board.name}"
        for board in boards
        for model in dict.fromkeys(player.model for player in board.players.values())
        if sum(player.model == model for player in board.players.values()) > 1
    ]
    if several and len(boards) > 1:
        yield (
            f"Run more than once: {listed(several)}. Each run has a row of its own, and an average only where every "
            "benchmark has that row."
        )


def _samplings(boards: Sequence[Standings]) -> Iterable[str]:
    """That benchmarks were not run with the same sampling."""
    used = {
        board.name: " or ".join(sorted({p.sampling for p in board.players.values() if p.sampling is not None}))
        for board in boards
    }
    used = {name: settings for name, settings in used.items() if settings}
    if len({*used.values()}) > 1:
        each = "; ".join(f"{name}: {settings}" for name, settings in used.items())
        yield f"The benchmarks were run with different generation_kwargs. {each}."
