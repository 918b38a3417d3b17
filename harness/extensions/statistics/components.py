"""Variance components of crossed effects: how much of what varies goes with the case, the seating, the repeat, …"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.tables import stats

GROUPS: Final = 20
"""Groups of units that the jackknife leaves out in turn, at most."""
_LEAST: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Component:
    """What one factor adds to the variance of a single number.

    Attributes:
        variance: the unbiased estimate, in the square of the metric's unit; below 0 by chance where little is there.
        interval: 95 %, by the jackknife; None with fewer than three units, and of a factor that crosses units.
        levels: how many values the factor has.
    """

    variance: float
    interval: stats.Interval | None
    levels: int


@dataclass(frozen=True, slots=True)
class Components:
    """The components of a set of numbers.

    Attributes:
        parts: factor → its component, in the order given; without those that cannot be separated.
        rest: what no factor explains.
        alike: factors whose component cannot be separated from those before them, or from the rest.
        n: how many numbers there are.
        cells: how many fixed means were taken out.
    """

    parts: Mapping[str, Component]
    rest: Component
    alike: tuple[str, ...]
    n: int
    cells: int

    def share(self, name: str | None = None) -> float | None:
        """A factor's share of all variance, or the rest's; estimates below 0 count as 0. None if nothing varies."""
        total = math.fsum(max(0.0, one.variance) for one in (*self.parts.values(), self.rest))
        own = self.rest if name is None else self.parts[name]
        return max(0.0, own.variance) / total if total else None

    def variance(self, name: str) -> float:
        """A factor's variance, 0 where it is estimated below that or has none of its own."""
        return max(0.0, self.parts[name].variance) if name in self.parts else 0.0


def components(
    values: Sequence[float],
    cells: Sequence[Hashable],
    factors: Mapping[str, Sequence[Hashable]],
    units: Sequence[Hashable],
    *,
    intervals: bool = True,
) -> Components | None:
    """Estimate the model: value = mean of its cell + an effect of its level for each factor + a rest.

    The estimates are MIVQUE(0) (Hartley, Rao and LaMotte, 1978, "A simple synthesis-based method of variance component
    estimation"): the sums of squares of y − its cell's mean, over the levels of each factor and in all, equated to
    what they are on average. They are unbiased in every design, however unbalanced, and those of the analysis of
    variance in balanced ones. `benchmarks/sample_sizes.py` measures bias and coverage.

    Args:
        values: the numbers.
        cells: of each number the combination of fixed conditions: each has a mean of its own.
        factors: name → of each number its level. Effects are random, and those of a factor have one variance.
        units: of each number what is independent of the others; intervals leave out groups of units in turn.
        intervals: whether to compute them, which takes twenty times as long.

    Returns:
        None without two numbers of a cell.
    """
    import numpy

    y = numpy.asarray(values, dtype=float)
    cell = _codes(cells)
    levels = {name: _codes(given) for name, given in factors.items()}
    whole = _estimate(y, cell, levels)
    if whole is None:
        return None
    kept, found = whole
    unit = _codes(units)
    count = int(unit.max()) + 1
    group = numpy.random.default_rng(0).permutation(count)[unit] % min(GROUPS, count)
    replicates = []
    for left_out in range(min(GROUPS, count)) if intervals and count > 2 else ():
        stays = group != left_out
        again = _estimate(y[stays], _again(cell[stays]), {name: _again(levels[name][stays]) for name in kept})
        if again is not None and again[0] == kept:
            replicates.append(again[1])
    parts = [
        Component(float(found[i]), _interval(float(found[i]), [one[i] for one in replicates], min(GROUPS, count)), size)
        for i, size in enumerate([*(int(levels[name].max()) + 1 for name in kept), len(values)])
    ]
    for i, name in enumerate(kept):  # leaving units out says nothing of effects that all units share
        if len({*zip(factors[name], units, strict=True)}) > parts[i].levels:
            parts[i] = Component(parts[i].variance, None, parts[i].levels)
    alike = tuple(name for name in factors if name not in kept)
    return Components(dict(zip(kept, parts, strict=False)), parts[-1], alike, len(values), int(cell.max()) + 1)


def _interval(value: float, replicates: Sequence[float], groups: int) -> stats.Interval | None:
    """Student's t interval of the jackknife, from 0 on; around 0 of an estimate below it."""
    if len(replicates) < max(3, groups - 2):
        return None
    count = len(replicates)
    center = math.fsum(replicates) / count
    error = math.sqrt((count - 1) / count * math.fsum((x - center) ** 2 for x in replicates))
    half = stats.t_quantile(count - 1) * error
    return max(0.0, value - half), max(0.0, value) + half


def _codes(keys: Sequence[Hashable]) -> Any:
    """Of each key its number, in order of appearance."""
    import numpy

    places: dict[Hashable, int] = {}
    return numpy.fromiter((places.setdefault(key, len(places)) for key in keys), dtype=numpy.int64, count=len(keys))


def _again(codes: Any) -> Any:
    """Codes without gaps."""
    import numpy

    return numpy.unique(codes, return_inverse=True)[1]


def _estimate(y: Any, cell: Any, levels: Mapping[str, Any]) -> tuple[list[str], Any] | None:
    """(the factors that can be separated, their variances and the rest's)."""
    import numpy

    n, sizes = len(y), numpy.bincount(cell) if len(y) else numpy.zeros(1)
    if n <= len(sizes):
        return None
    centered = y - (numpy.bincount(cell, y) / sizes)[cell]
    names = [*levels]
    tables = {name: _Counts(levels[name], cell, sizes) for name in names}
    # Gram matrix of M Z Z' M, for the rest with Z = 1: what the sums of squares are on average, per unit of variance.
    gram = numpy.zeros((len(names) + 1, len(names) + 1))
    squares = numpy.zeros(len(names) + 1)
    gram[-1, -1], squares[-1] = n - len(sizes), float(centered @ centered)
    for i, one in enumerate(names):
        squares[i] = float((numpy.bincount(levels[one], centered) ** 2).sum())
        gram[i, -1] = gram[-1, i] = tables[one].trace()
        for j, other in enumerate(names[: i + 1]):
            gram[i, j] = gram[j, i] = tables[one].product(tables[other])
    kept = _separable(gram)
    chosen = [*kept, len(names)]
    found = numpy.linalg.solve(gram[numpy.ix_(chosen, chosen)], squares[chosen])
    return [names[i] for i in kept], found


def _separable(gram: Any) -> list[int]:
    """The factors, each of which adds something to the rest and those before it."""
    import numpy

    kept: list[int] = []
    rest = len(gram) - 1
    for i in range(rest):
        chosen = [*kept, rest]
        if gram[i, i] <= 0:
            continue
        scale = numpy.sqrt(numpy.diag(gram)[[*chosen, i]])
        inner = gram[numpy.ix_(chosen, chosen)] / numpy.outer(scale[:-1], scale[:-1])
        across = gram[chosen, i] / scale[:-1] / scale[-1]
        if 1 - across @ numpy.linalg.solve(inner, across) > _LEAST:
            kept.append(i)
    return kept


class _Counts:
    """How often each level of a factor is in each cell."""

    def __init__(self, level: Any, cell: Any, sizes: Any) -> None:
        import numpy
        from scipy import sparse

        self.level, self.cell, self.sizes = level, cell, sizes
        ones = numpy.ones(len(level))
        self.by_cell = sparse.csr_matrix((ones, (level, cell)), shape=(int(level.max()) + 1, len(sizes)))
        self.rows = sparse.csr_matrix((ones, (level, numpy.arange(len(level)))))

    def trace(self) -> float:
        """tr(Z' M Z): M takes the cells' means out."""
        squared = self.by_cell.multiply(self.by_cell).sum(axis=0)
        return len(self.level) - float((squared / self.sizes).sum())

    def product(self, other: _Counts) -> float:
        """‖Z₁' M Z₂‖², by its three parts: no matrix of all levels by all levels is made."""
        both = self.rows @ other.rows.T
        plain = float(both.multiply(both).sum())
        across = self.by_cell.multiply(1 / self.sizes).T @ both  # cells × levels of the other
        mixed = float(across.multiply(other.by_cell.T).sum())
        inner = [one.by_cell.T @ one.by_cell for one in (self, other)]
        scale = 1 / self.sizes
        last = float(inner[0].multiply(inner[1]).multiply(scale[:, None] * scale[None, :]).sum())
        return plain - 2 * mixed + last
