"""Whether runs that end once a number is known well enough keep their promise, and how many episodes they save.

python benchmarks/run.py stopping deciding
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy
from scipy.stats import norm, t

from harness.extensions.stopping.estimates import Mean, MeanEstimate

Draw = Callable[[numpy.random.Generator, int], numpy.ndarray]
"""Numbers of so many cases: a row a case, a column a repeat."""


def _repeated(generator: numpy.random.Generator, cases: int) -> numpy.ndarray:
    """Zeros and ones, four repeats of a case, whose chance is the case's."""
    return (generator.random((cases, 4)) < generator.beta(2, 1, (cases, 1))).astype(float)


SHAPES: dict[str, tuple[Draw, float, float, tuple[float, float]]] = {
    "shares, 0.9": (lambda g, n: (g.random((n, 1)) < 0.9).astype(float), 0.9, 0.1, (0, 1)),
    "shares, 0.5": (lambda g, n: (g.random((n, 1)) < 0.5).astype(float), 0.5, 0.1, (0, 1)),
    "scores, skewed: beta(0.5, 4.5)": (lambda g, n: g.beta(0.5, 4.5, (n, 1)), 0.1, 0.1, (0, 1)),
    "scores, uniform": (lambda g, n: g.random((n, 1)), 0.5, 0.1, (0, 1)),
    "scores, narrow: normal(0.7, 0.05)": (lambda g, n: g.normal(0.7, 0.05, (n, 1)).clip(0, 1), 0.7, 0.1, (0, 1)),
    "shares, 4 repeats of a case": (_repeated, 2 / 3, 0.1, (0, 1)),
    "no bounds: gamma(4)": (lambda g, n: g.gamma(4, 100, (n, 1)), 400, 40, (-math.inf, math.inf)),
    "no bounds: lognormal": (lambda g, n: g.lognormal(0, 1, (n, 1)), math.exp(0.5), 0.5, (-math.inf, math.inf)),
}
"""Name → (numbers, their mean, half the width that is wanted, bounds)."""
LONGEST = 300
"""Cases of a run that never stops; a look after each."""


def estimate(
    cases: int, repeats: int, bounds: tuple[float, float], distances: tuple[float | None, ...]
) -> tuple[MeanEstimate, list[list[str]]]:
    """The confidence sequence of the harness over so many blocks of a case each, and their ids."""
    ids = [[f"{case}/{repeat}" for repeat in range(repeats)] for case in range(cases)]
    weights = {name: 1 / (cases * repeats) for block in ids for name in block}
    return MeanEstimate(Mean("score", weights, bounds), ids, dict.fromkeys(weights, float(cases)), distances), ids


def looks(numbers: numpy.ndarray, bounds: tuple[float, float], width: float) -> numpy.ndarray:
    """The interval after each case: a row of two ends; without an interval NaN."""
    cases, repeats = numbers.shape
    known, ids = estimate(cases, repeats, bounds, (width,))
    found = numpy.full((len(numbers), 2), math.nan)
    for i, row in enumerate(numbers):
        known.add(dict(zip(ids[i], row.tolist(), strict=True)))
        if (interval := known.interval) is not None:
            found[i] = interval
    return found


def coverage(samples: int, longest: int = LONGEST) -> list[dict[str, object]]:
    """The share of runs whose interval holds the mean at every look, to the very end, and when they stop."""
    rows: list[dict[str, object]] = []
    for kind, (draw, truth, width, bounds) in SHAPES.items():
        hits, ordinary, stops, deviation = 0, 0, [], 0.0
        for sample in range(samples):
            numbers = draw(numpy.random.default_rng((7, sample)), longest)
            ends = looks(numbers, bounds, width)
            missed = (ends[:, 0] > truth) | (ends[:, 1] < truth)
            hits += not missed.any()
            narrow = numpy.flatnonzero(ends[:, 1] - ends[:, 0] <= 2 * width + 1e-12)
            stops.append(int(narrow[0]) + 1 if len(narrow) else longest)
            means = numbers.mean(axis=1)
            ordinary += _always_covered(means, truth)
            deviation += means.std(ddof=1) / samples
        quantile = float(norm.ppf(0.975))
        known = math.ceil((quantile * deviation / width) ** 2)
        worst = math.ceil((quantile * (bounds[1] - bounds[0]) / 2 / width) ** 2) if math.isfinite(bounds[1]) else None
        row: dict[str, object] = {"numbers": kind, "±": width, "covered": f"{hits / samples:.3f}"}
        row |= {"t interval": f"{ordinary / samples:.3f}", "cases": round(float(numpy.mean(stops)))}
        row |= {"9 of 10 within": int(numpy.quantile(stops, 0.9)), "fixed, any mean": worst}
        saved = f"{1 - numpy.mean(stops) / worst:.0%}" if worst else None
        rows.append({**row, "saved": saved, "fixed, spread known": known})
    return rows


def _always_covered(means: numpy.ndarray, truth: float) -> bool:
    """Whether Student's t interval holds the mean at every look from the tenth case on."""
    n = numpy.arange(1, len(means) + 1)
    center = means.cumsum() / n
    squares = (means**2).cumsum() - n * center**2
    with numpy.errstate(invalid="ignore", divide="ignore"):
        half = t.ppf(0.975, n - 1) * numpy.sqrt(numpy.maximum(squares, 0) / (n - 1) / n)
    misses = (numpy.abs(center - truth) > half) & (half > 0)
    return not misses[9:].any()


def _pairs(gained: float, lost: float) -> Callable[[numpy.random.Generator, int], numpy.ndarray]:
    """Differences of zeros and ones. `gained`: the share of cases that only B solves; `lost`: that only A solves."""

    def draw(generator: numpy.random.Generator, cases: int) -> numpy.ndarray:
        luck = generator.random(cases)
        return numpy.where(luck < gained, 1.0, numpy.where(luck > 1 - lost, -1.0, 0.0))

    return draw


def _scores(mean: float, deviation: float) -> Callable[[numpy.random.Generator, int], numpy.ndarray]:
    """Differences of scores between 0 and 1 that are nearly normal."""
    return lambda generator, cases: generator.normal(mean, deviation, cases).clip(-1, 1)


DIFFERENCES: tuple[tuple[str, Callable[[numpy.random.Generator, int], numpy.ndarray], float, float], ...] = (
    ("zeros and ones", _pairs(0.3, 0.1), 0.2, 0.6),
    ("zeros and ones", _pairs(0.2, 0.1), 0.1, 0.539),
    ("zeros and ones", _pairs(0.1, 0.1), 0.0, 0.447),
    ("scores", _scores(0.22, 0.16), 0.22, 0.16),
    ("scores", _scores(0.1, 0.2), 0.1, 0.2),
    ("scores", _scores(0.05, 0.05), 0.05, 0.05),
)
"""Of what numbers, differences B − A, their mean, their standard deviation."""


def deciding(samples: int, longest: int = 500) -> list[dict[str, object]]:
    """`harness compare --until decided`: how often which side is called better, and after how many pairs of cases."""
    rows: list[dict[str, object]] = []
    for kind, draw, gap, deviation in DIFFERENCES:
        for margin in (None, 0.1) if kind == "zeros and ones" else (None,):
            calls, stops = {"B": 0, "A": 0, "equivalent": 0}, []
            for sample in range(samples):
                found, n = _decided(draw(numpy.random.default_rng((11, sample)), longest), margin)
                stops.append(n)
                if found is not None:
                    calls[found] += 1
            power = float(norm.ppf(0.975) + norm.ppf(0.8))
            fixed = math.ceil((power * deviation / gap) ** 2) if gap else None
            row: dict[str, object] = {
                "numbers": kind.strip(),
                "B − A": gap,
                "SD": round(deviation, 2),
                "margin": margin,
            }
            row |= {name: f"{count / samples:.3f}" for name, count in calls.items()}
            rows.append({**row, "pairs": round(float(numpy.mean(stops))), "fixed, 80 % power": fixed})
    return rows


def _decided(differences: numpy.ndarray, margin: float | None) -> tuple[str | None, int]:
    """What is decided of these differences, and after how many."""
    known, ids = estimate(len(differences), 1, (-1, 1), (None, margin) if margin else (None,))
    for i, difference in enumerate(differences.tolist()):
        known.add({ids[i][0]: difference})
        low, high = known.interval or (-1, 1)
        if low > 0 or high < 0:
            return ("B" if low > 0 else "A"), i + 1
        if margin and max(-low, high) <= margin:
            return "equivalent", i + 1
    return None, len(differences)
