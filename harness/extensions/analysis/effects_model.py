"""How much each of several choices moves a number: a linear model of their main effects, with clustered errors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.tables.stats import Interval, t_quantile

MAX_LEVELS: Final = 60
"""So many values may a label have whose effect is estimated."""
_ZERO: Final = 1e-14
"""A variance below this share of the numbers' variance is one of rounding."""


def many_levels(effects: Sequence[str], values: Mapping[str, Sequence[Any]]) -> list[str]:
    """What is wrong with labels of too many values: numbers that count, such as those of cases."""
    counts = {label: len({str(value) for value in values.get(label, ())}) for label in effects}
    return [
        f"effects: {label} has {count} values, and {MAX_LEVELS} are the most: use where, or another label"
        for label, count in counts.items()
        if count > MAX_LEVELS
    ]


@dataclass(frozen=True, slots=True)
class Level:
    """The effect of one value of a factor.

    Attributes:
        mean: the mean with this value, where all values of every other factor weigh the same.
        difference: `mean` − the grand mean.
        interval: 95 % confidence interval of the difference; None if the numbers do not say how sure it is.
    """

    mean: float
    difference: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Term:
    """What a factor, or a pair of factors, came to.

    Attributes:
        levels: its values in order; empty for a pair, and where `reason` is "alone" or "entangled".
        share: which share of the numbers' variance it explains (η²); None if they do not vary.
        statistic, df, pvalue: of the test that all its levels have one mean: F with two degrees of freedom, which need
            not be whole numbers.
        reason: why there is no test: "alone" (the factor has one level), "entangled" (other factors go with it, so that
            no data could say which one it is), "few" (a single cluster has one of its levels), "flat" (what is tested
            does not vary between clusters).
    """

    levels: tuple[Level, ...] = ()
    share: float | None = None
    statistic: float | None = None
    df: tuple[float, float] | None = None
    pvalue: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Fit:
    """The grand mean, the terms in order, and how many clusters there are."""

    mean: float | None
    terms: tuple[Term, ...]
    pairs: tuple[Term, ...]
    clusters: int


def fit(
    numbers: Sequence[float], factors: Sequence[Sequence[int]], clusters: Sequence[Hashable], *, pairs: bool = False
) -> Fit:
    """Estimate the main effects of factors.

    Ordinary least squares on factors in effect coding (each one's effects add up to 0) with an intercept, the grand
    mean. Errors are cluster-robust with the correction of Bell and McCaffrey (2002; CR2), which makes them unbiased
    where errors are alike, whatever the design. Intervals are Student's t with G − 1 degrees of freedom for G clusters,
    at most N − K for N numbers and K coefficients.

    A test divides the sum of squared effects by what it is on average where all are 0, with the degrees of freedom of
    Box (1954) and of Greenhouse and Geisser (1959): F = Σθ²/tr V, f = (tr V)²/tr V² and f(G − 1), at most N − K, for
    the effects θ of all levels with covariance V. Where every cluster has every combination equally often this is the
    corrected F test of the analysis of variance of repeated measures; where every cluster is one number and all
    combinations have as many, F is that of the plain analysis of variance. Hotelling's T² would need more clusters than
    levels, and finds less with few.

    Args:
        numbers: one an episode.
        factors: for each factor, the level of every episode, counted from 0.
        clusters: which episodes belong together, such as those of one question.
        pairs: whether each pair of factors is tested too, in a model that has all of them.
    """
    import numpy

    y = numpy.asarray(numbers, dtype=float)
    index: dict[Hashable, int] = {}
    groups = numpy.array([index.setdefault(cluster, len(index)) for cluster in clusters], dtype=int)
    places = [numpy.asarray(levels, dtype=int) for levels in factors]
    codes = [_codes(int(levels.max(initial=0))) for levels in places]
    blocks = [code[levels] for code, levels in zip(codes, places, strict=True)]
    thin = [_is_thin(levels, groups) for levels in places]
    mean, terms = _terms(y, blocks, codes, thin, groups, len(index))
    tested: list[Term] = []
    if pairs:
        both = [_products(one, other) for one, other in itertools.combinations(blocks, 2)]
        products = [numpy.kron(one, other) for one, other in itertools.combinations(codes, 2)]
        combined = [one * 1_000 + other for one, other in itertools.combinations(places, 2)]
        thin += [_is_thin(levels, groups) for levels in combined]
        _, every = _terms(y, [*blocks, *both], [*codes, *products], thin, groups, len(index), skip=len(blocks))
        tested = every
    return Fit(mean, tuple(terms), tuple(tested), len(index))


def _codes(width: int) -> Any:
    """Effect coding: the effects of `width` + 1 levels from those of all but the last; together they are 0."""
    import numpy

    return numpy.vstack([numpy.eye(width), -numpy.ones((1, width))])


def _is_thin(levels: Any, groups: Any) -> bool:
    """Whether a single cluster has some level: its effect fits that cluster exactly, and so looks certain."""
    import numpy

    seen = numpy.unique(numpy.column_stack([levels, groups]), axis=0)[:, 0]
    return bool(len(seen) and numpy.unique(seen, return_counts=True)[1].min() < 2)


def _products(one: Any, other: Any) -> Any:
    """Every column of one block times every column of the other."""
    return (one[:, :, None] * other[:, None, :]).reshape(len(one), -1)


def _terms(
    y: Any,
    blocks: Sequence[Any],
    codes: Sequence[Any],
    thin: Sequence[bool],
    groups: Any,
    clusters: int,
    skip: int = 0,
) -> tuple[float | None, list[Term]]:
    """The grand mean, and the terms of the blocks from number `skip` on."""
    import numpy

    if not len(y):
        return None, [Term(reason="alone") for _ in blocks[skip:]]
    design = numpy.hstack([numpy.ones((len(y), 1)), *blocks])
    ends = numpy.cumsum([1, *(block.shape[1] for block in blocks)])
    places = [slice(int(start), int(stop)) for start, stop in itertools.pairwise(ends)]
    gram, products = design.T @ design, design.T @ (y - y.mean())
    total = float(((y - y.mean()) ** 2).sum())
    varies = total > 1e-12 * len(y) * max(float(abs(y).max()), 1e-300) ** 2
    ranks = [_rank(gram, place) for place in places]
    explained = _explained(gram, products)
    full = _rank(gram)
    estimates, covariance = _estimated(y, design, groups, clusters if varies else 0)
    terms = []
    for number in range(skip, len(blocks)):
        place, width = places[number], blocks[number].shape[1]
        if not width:
            terms.append(Term(reason="alone"))
        elif full - ranks[number] < width:
            terms.append(Term(reason="entangled"))
        else:
            gain = explained - _explained(gram, products, place)
            share = min(max(gain / total, 0.0), 1.0) if varies else None
            variance = None if covariance is None or thin[number] else covariance[place, place]
            scale = total / len(y) * _ZERO
            freedom = (clusters - 1, len(y) - full)
            levels = () if skip else _levels(float(estimates[0]), estimates[place], variance, min(freedom), scale)
            terms.append(_tested(levels, share, estimates[place], codes[number], variance, freedom, scale))
    return _plain(float(estimates[0])), terms


def _indices_without(size: int, without: slice | None) -> list[int]:
    return [i for i in range(size) if without is None or not without.start <= i < without.stop]


def _rank(gram: Any, without: slice | None = None) -> int:
    """How many independent columns a design has, some of them left out."""
    import numpy

    kept = _indices_without(len(gram), without)
    return int(numpy.linalg.matrix_rank(gram[numpy.ix_(kept, kept)], tol=1e-9 * gram[0, 0], hermitian=True))


def _explained(gram: Any, products: Any, without: slice | None = None) -> float:
    """The sum of squares that a design explains, some of its columns left out."""
    import numpy

    kept = _indices_without(len(gram), without)
    part = numpy.linalg.pinv(gram[numpy.ix_(kept, kept)], rcond=1e-11, hermitian=True)
    return float(products[kept] @ part @ products[kept])


def _estimated(y: Any, design: Any, groups: Any, clusters: int) -> tuple[Any, Any | None]:
    """The coefficients, and their covariance where there is something to estimate it from."""
    import numpy

    values, vectors = numpy.linalg.eigh(design.T @ design)
    kept = values > values.max() * 1e-11
    root = vectors[:, kept] / numpy.sqrt(values[kept])  # root rootᵀ is the inverse of the design's square
    estimates = root @ (root.T @ (design.T @ y))
    if clusters < 2 or len(y) <= design.shape[1]:
        return estimates, None
    residuals = y - design @ estimates
    whole = numpy.zeros((root.shape[1], root.shape[1]))
    order = numpy.argsort(groups, kind="stable")
    for rows in numpy.split(order, numpy.flatnonzero(numpy.diff(groups[order])) + 1):
        # The part of the hat matrix that is the cluster's own, taken out of its residuals: (I − H)^(−1/2) (CR2).
        left, leverage, right = numpy.linalg.svd(design[rows] @ root, full_matrices=False)
        rest = 1 - leverage**2
        scale = numpy.where(rest > 1e-9, leverage / numpy.sqrt(numpy.maximum(rest, 1e-9)), 0.0)
        own = right.T @ (scale * (left.T @ residuals[rows]))
        whole += numpy.outer(own, own)
    return estimates, root @ whole @ root.T


def _levels(mean: float, estimates: Any, variance: Any | None, df: int, scale: float) -> tuple[Level, ...]:
    import numpy

    codes = _codes(len(estimates))
    differences = codes @ estimates
    variances = [0.0] * len(codes) if variance is None else numpy.einsum("ij,jk,ik->i", codes, variance, codes)
    levels = []
    for difference, square in zip(map(float, differences), map(float, variances), strict=True):
        half = t_quantile(df) * math.sqrt(square) if square > scale else None
        ends = None if half is None else (_plain(difference - half), _plain(difference + half))
        levels.append(Level(_plain(mean + difference), _plain(difference), ends))
    return tuple(levels)


def _plain(x: float) -> float:
    """The number without what another machine's arithmetic would add: twelve digits, none below 10⁻¹²."""
    return round(float(f"{x:.12g}"), 12)


def _tested(
    levels: tuple[Level, ...],
    share: float | None,
    estimates: Any,
    codes: Any,
    variance: Any | None,
    freedom: tuple[int, int],
    scale: float,
) -> Term:
    """The term with its test. `codes`: what makes the effects of all levels of the estimates; `freedom`: clusters − 1,
    and numbers − coefficients."""
    from scipy.special import fdtrc

    if variance is None or share is None:
        return Term(levels, share, reason="flat" if share is None else "few")
    effects, spread = codes @ estimates, codes @ variance @ codes.T
    expected = float(spread.trace())
    if expected <= scale:
        return Term(levels, share, reason="flat")
    statistic = float(effects @ effects) / expected
    df = min(expected * expected / float((spread * spread).sum()), float(len(estimates)))
    degrees = (_plain(df), _plain(min(df * freedom[0], freedom[1])))
    return Term(levels, _plain(share), _plain(statistic), degrees, float(f"{fdtrc(*degrees, statistic):.10g}"))
