"""Who is ahead over all benchmarks: a row per model, a column per benchmark."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from harness.tables import SIMULATED, Cell, Column, HeadlineSpec, Row, Table, stats

from .leaderboard import listed
from .standings import Role, Standing, Standings, best_of

Rows = Mapping[tuple[Role, str], Mapping[str, Standing]]
"""(role, model) → benchmark → its standing there."""


def overall(boards: Sequence[Standings]) -> Table:
    """All benchmarks on one page: a row per model, a column per benchmark, each with its own headline.

    The average is there where every benchmark is, of numbers between its floor, 0, and its ceiling, 1, where both were
    played; where the headline names no ceiling, the end of its scale is one. Without a floor there is no average: doing
    nothing is worth 0 in one benchmark and 77 % in another. What lies beyond an end counts as the end, as on the Open
    LLM Leaderboard 2: one benchmark that a model plays worse than chance would outweigh all others.

    Its interval takes benchmarks, floors and ceilings as independent and fixed: it combines the distances from each
    number to the ends of its interval, squared, added, rooted, divided by how many there are (the method of variance
    estimates recovery; Zou and Donner, 2008). So it never leaves the scale, and a benchmark in which all episodes agree
    adds its own uncertainty.
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
        cells = [own[name].cell if name in own else Cell(n=0) for name in best]
        ahead = [
            role == "model" and cell.value is not None and cell.value == best[name]
            for name, cell in zip(best, cells, strict=True)
        ]
        cells = [replace(cell, best=is_best) for cell, is_best in zip(cells, ahead, strict=True)]
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
        ends, row = scale_of(board), cells.get(board.name)
        if isinstance(ends, str) or row is None or row.cell.value is None:
            return Cell(n=0)
        value, low, high = (share(x, ends) for x in (row.cell.value, row.cell.low, row.cell.high))
        if board.headline.better == "lower":
            low, high = high, low
        values.append(value or 0.0)
        below.append(None if low is None else values[-1] - low)
        above.append(None if high is None else high - values[-1])
    mean, simulated = statistics.fmean(values), any(row.cell.uses_ground_truth for row in cells.values())
    reach = [_combined(side) for side in (below, above)]
    if reach[0] is None or reach[1] is None:
        return Cell(mean, n=len(values), uses_ground_truth=simulated)
    low, high = max(0.0, mean - reach[0]), min(1.0, mean + reach[1])  # a sum may round beyond them
    return Cell(mean, n=len(values), low=low, high=high, uses_ground_truth=simulated)


def scale_of(board: Standings) -> tuple[float, float] | str:
    """The numbers of floor and ceiling; if one is not known, or the ceiling is no better, what is lacking."""
    headline, ends = board.headline, dict[Role, float | None]()
    for row in board.rows:
        ends.setdefault(row.end or row.role, row.cell.value)
    floor, ceiling = ends.get("floor"), ends.get("ceiling")
    if ceiling is None and headline.ceiling is None:
        ceiling = _best_possible(headline, [row.cell.value for row in board.rows if row.cell.value is not None])
    lacking = [name for name, value in (("floor", floor), ("ceiling", ceiling)) if value is None]
    if floor is None or ceiling is None:
        return f"{board.name} has no {' and no '.join(lacking)} here"
    worse = floor >= ceiling if headline.better == "higher" else floor <= ceiling
    return f"the ceiling of {board.name} is no better than its floor" if worse else (floor, ceiling)


def _best_possible(headline: HeadlineSpec, values: Sequence[float]) -> float | None:
    """The best number that there can be: an end of the metric's bounds, of percent 0 or 1; None if that is unknown."""
    low, high = headline.metrics[headline.metric].bounds
    if not math.isfinite(high - low) or not all(low <= x <= high for x in values):
        if headline.table.unit != "percent":
            return None
        low, high = 0.0, 1.0
    return high if headline.better == "higher" else low


def position(x: float | None, ends: tuple[float, float]) -> float | None:
    """Where a number lies: 0 is the floor, 1 the ceiling."""
    floor, ceiling = ends
    return None if x is None else (x - floor) / (ceiling - floor)


def share(x: float | None, ends: tuple[float, float]) -> float | None:
    """How far from floor to ceiling, from 0 to 1: what lies beyond an end counts as the end."""
    at = position(x, ends)
    return None if at is None else min(1.0, max(0.0, at))


def _combined(distances: Sequence[float | None]) -> float | None:
    known = [x for x in distances if x is not None]
    return math.hypot(*known) / len(known) if len(known) == len(distances) else None


def _notes(boards: Sequence[Standings], models: Rows, averaged: bool) -> Iterable[str]:
    yield "Each benchmark by its own headline, with its 95 % interval. ↑: higher is better, ↓: lower is."
    if averaged:
        yield (
            "Average: mean over all benchmarks, each from 0 % (its floor) to 100 % (its ceiling; where the headline "
            "names none, the best number there can be), where a model has all of them. What lies beyond an end counts "
            "as the end. The interval combines those of the benchmarks (Zou and Donner, 2008), and takes benchmarks, "
            "floors and ceilings as independent and fixed; there is none where a benchmark has none."
        )
    elif lacking := [why for board in boards if isinstance(why := scale_of(board), str)]:
        yield (
            f"No average: it runs from floor to ceiling of each benchmark, and {listed(lacking, '; ')}. "
            "`harness leaderboard --with_baselines` plays those that headlines name."
        )
    pvalues = [pair.pvalue for board in boards for pair in board.pairs if pair.pvalue is not None]
    if pvalues and len(boards) > 1:
        holm, rate = (sum(p < 0.05 for p in adjusted(pvalues)) for adjusted in (stats.holm, stats.benjamini_hochberg))
        yield (
            f"The ranks of each benchmark are corrected for its own pairs of models. Of all {len(pvalues):,} tests of "
            f"this page {holm:,} are significant after Holm's correction, {rate:,} at a false discovery rate of 5 % "
            "(Benjamini and Hochberg, 1995); `harness leaderboard --pairs` lists them."
        )
    if any(row.cell.uses_ground_truth for cells in models.values() for row in cells.values()):
        yield f"{SIMULATED} simulated: players knew the right answer and gave it with a declared probability."
    if any(len(cells) < len(boards) for cells in models.values()):
        yield "–: not run."
    least = {board.name: board.headline.min_read for board in boards}
    empty, unread = list[str](), list[str]()
    for (_, model), own in models.items():
        for name, row in own.items():
            if not _has_number(row):
                few = row.read is not None and row.read < least[name]
                (unread if few else empty).append(f"{model} in {name}")
    if empty:
        yield f"–, though run: {listed(empty)}: all episodes failed or have no number."
    if unread:
        yield f"–, though run: {listed(unread)}: too few turns were parsed (`min_read` of the headline)."
    if parts := [f"{board.name}: {board.part}" for board in boards if board.part]:
        yield f"Incomplete: {'; '.join(parts)}."
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
