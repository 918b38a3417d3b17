"""`harness leaderboard --pairs`: the paired differences of all models in all benchmarks, corrected as one family."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from harness.tables import Cell, Column, NumberForm, Row, Table, stats
from harness.tables.table import Unit

from . import paired
from .model_pairs import ModelPair
from .overall import scale_of
from .standings import Standings

AVERAGE: Final = "average"
_COLUMNS: Final[dict[str, tuple[str, NumberForm]]] = {
    "difference": ("B − A", "quantity"),
    "p": ("p", "pvalue"),
    "p_holm": ("p (Holm)", "pvalue"),
    "q": ("q", "pvalue"),
    "clusters": ("observations", "count"),
}


@dataclass(frozen=True, slots=True)
class _Line:
    benchmark: str
    models: tuple[str, str]
    difference: float | None
    interval: stats.Interval | None
    pvalue: float | None
    observations: int


def all_pairs(boards: Sequence[Standings]) -> Table:
    """A row for each pair of models in each benchmark, and for their averages where these have one.

    Differences are paired by episode and clustered, as ranks are. Holm's correction and the false discovery rate run
    over all rows: over the whole leaderboard.
    """
    lines = [_line(board, pair) for board in boards for pair in board.pairs]
    if len(boards) > 1:
        lines += _averages(boards)
    known = [line.pvalue for line in lines if line.pvalue is not None]
    holm, rate = iter(stats.holm(known)), iter(stats.benjamini_hochberg(known))
    units: dict[str, Unit] = {b.name: unit for b in boards if isinstance(unit := b.headline.table.unit, str)}
    rows = []
    for line in lines:
        low, high = line.interval or (None, None)
        n = line.observations
        tests = (None, None) if line.pvalue is None else (next(holm), next(rate))
        cells = [Cell(line.difference, n=n, low=low, high=high), *(Cell(x, n=n) for x in (line.pvalue, *tests, n))]
        names = (line.benchmark, *line.models)
        rows.append(Row(dict(zip(("benchmark", "a", "b"), names, strict=True)), names, tuple(cells), line.benchmark))
    return Table(
        title="All pairs of models",
        row_labels=("benchmark", "a", "b"),
        column_labels=("statistic",),
        columns=tuple(Column({"statistic": name}, (title,), form=form) for name, (title, form) in _COLUMNS.items()),
        rows=tuple(rows),
        row_names=("Benchmark", "A", "B"),
        error="interval",
        digits={**{board.name: board.headline.digits for board in boards}, AVERAGE: 1},
        unit={**units, AVERAGE: "percent"},
        notes=tuple(_notes(boards, lines, len(known))),
    )


def _line(board: Standings, pair: ModelPair) -> _Line:
    metric = board.headline.metrics[board.headline.metric]
    values = [x for stratum in pair.strata for _, x in stratum]
    low, high = metric.bounds
    width = high - low
    binary = width == 1 and all(x in (-1, 0, 1) for x in values)
    found = paired.paired(pair.strata, width if all(abs(x) <= width for x in values) else math.inf, binary=binary)
    return _Line(board.name, pair.models, found.difference, found.interval, pair.pvalue, found.clusters)


def _averages(boards: Sequence[Standings]) -> Iterable[_Line]:
    """Differences of averages from floor to ceiling: benchmarks are fixed and independent, their errors add up."""
    scales = [scale_of(board) for board in boards]
    of_pair = [{frozenset(pair.models): pair for pair in board.pairs} for board in boards]
    models = list(dict.fromkeys(name for board in boards for pair in board.pairs for name in pair.models))
    for a, b in itertools.combinations(models, 2):
        parts = []
        for scale, pairs in zip(scales, of_pair, strict=True):
            pair = pairs.get(frozenset((a, b)))
            if pair is None or isinstance(scale, str):
                break
            spread = stats.clustered(pair.strata)
            if spread.value is None or spread.stderr is None:
                break
            width = (scale[1] - scale[0]) * (1 if pair.models == (a, b) else -1)
            parts.append((spread.value / width, spread.stderr / abs(width), spread.df, spread.clusters))
        if len(parts) < len(boards):
            continue
        mean = statistics.fmean(value for value, *_ in parts)
        error = math.hypot(*(error for _, error, *_ in parts)) / len(parts)
        if not error:
            continue
        # Welch and Satterthwaite: the degrees of freedom of a sum of independent variances.
        squares = [(error / len(parts)) ** 2 for _, error, *_ in parts]
        df = math.fsum(squares) ** 2 / math.fsum(x * x / one[2] for x, one in zip(squares, parts, strict=True))
        from scipy.special import stdtr  # without scipy.stats, which takes a second to import

        half = stats.t_quantile(df) * error
        yield _Line(
            AVERAGE, (a, b), mean, (mean - half, mean + half), 2 * float(stdtr(df, -abs(mean) / error)),
            sum(count for *_, count in parts),
        )  # fmt: skip


def _notes(boards: Sequence[Standings], lines: Sequence[_Line], tests: int) -> Iterable[str]:
    every = "the one test" if tests == 1 else f"all {tests:,} tests"
    yield (
        "Differences on the episodes that both models played, in brackets their 95 % intervals; p: exact two-sided "
        f"sign-flip test; p (Holm): after Holm's correction for {every} of this table; q: the false "
        "discovery rate at which it is significant (Benjamini and Hochberg, 1995)."
    )
    better = {board.headline.better for board in boards}
    if "lower" in better:
        named = ", ".join(board.name for board in boards if board.headline.better == "lower")
        yield f"Lower is better in {named}."
    if any(line.benchmark == AVERAGE for line in lines):
        yield (
            "average: of the differences, each in percent of the way from floor to ceiling; a t test with the degrees "
            "of freedom of Welch and Satterthwaite, in which benchmarks are fixed and independent."
        )
