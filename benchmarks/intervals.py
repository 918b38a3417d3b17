"""How often 95 % intervals cover the truth: those of bounded means in tables, and those of paired differences.

python benchmarks/run.py intervals paired_intervals
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from functools import partial

import numpy
from scipy.stats import t

from harness.extensions.analysis import paired
from harness.tables import stats

Ends = tuple[float, float]
Drawn = list[list[tuple[Hashable, float]]]
Draw = Callable[[numpy.random.Generator, tuple[int, int]], numpy.ndarray]
KINDS: dict[str, tuple[Draw, float]] = {
    "beta(2, 2)": (lambda g, size: g.beta(2, 2, size), 0.5),
    "beta(8, 1)": (lambda g, size: g.beta(8, 1, size), 8 / 9),
    "beta(0.3, 0.3)": (lambda g, size: g.beta(0.3, 0.3, size), 0.5),
    "70 % ones, else uniform": (lambda g, size: numpy.where(g.random(size) < 0.7, 1.0, g.random(size)), 0.85),
    "thirds": (lambda g, size: g.integers(0, 4, size) / 3, 0.5),
}
SIZES = (5, 10, 20, 50)


def coverage(samples: int, resamples: int = 500) -> list[dict[str, object]]:
    """The interval of tables, a t interval and a bootstrap: the share of samples whose interval covers the mean."""
    rows: list[dict[str, object]] = []
    generator = numpy.random.default_rng(0)
    for kind, (draw, truth) in KINDS.items():
        for n in SIZES:
            quantile, hits = float(t.ppf(0.975, n - 1)), {"harness": 0, "t, cut": 0, "bootstrap": 0}
            for values in draw(generator, (samples, n)):
                half = quantile * values.std(ddof=1) / math.sqrt(n)
                means = generator.choice(values, (resamples, n)).mean(axis=1)
                ends = {
                    "harness": stats.interval([[*enumerate(values.tolist())]], (0, 1)),
                    "t, cut": (values.mean() - half, values.mean() + half),
                    "bootstrap": tuple(numpy.quantile(means, [0.025, 0.975])),
                }
                for name, interval in ends.items():
                    hits[name] += interval is not None and interval[0] <= truth <= interval[1]
            rows.append({"numbers": kind, "n": n, **{name: f"{count / samples:.3f}" for name, count in hits.items()}})
    return rows


UNEQUAL: tuple[tuple[int, ...], ...] = (
    (2, 30, 100),
    (3, 100),
    (1, 40),
    (5, 100),
    (5, 30, 100),
    (10, 100),
    (5,) * 5,
    (20,) * 20,
    (1,) * 27,
)
CLUSTERS: tuple[tuple[int, ...], ...] = (
    (10,) * 5,
    (10,) * 10,
    (1,) * 5 + (50,),
    (5,) * 8 + (100,),
    (1,) * 20 + (20,) * 2,
)


def unequal_coverage(samples: int) -> list[dict[str, object]]:
    """Means over conditions of these sizes, then of clusters of these sizes: the share of intervals that cover them."""
    generator, unbounded = numpy.random.default_rng(0), (-math.inf, math.inf)

    def share(p: float) -> Callable[[int], numpy.ndarray]:
        return lambda n: generator.random(n) < p

    draws: dict[str, tuple[Callable[[int], numpy.ndarray], float, Ends]] = {
        f"shares, {p}": (share(p), p, (0, 1)) for p in (0.05, 0.3, 0.5, 0.7, 0.95)
    }
    draws["normal"] = generator.standard_normal, 0.0, unbounded
    draws["exponential"] = generator.standard_exponential, 1.0, unbounded

    def covered(strata: Callable[[], Drawn], truth: float, within: Ends) -> str:
        found = [ends for _ in range(samples) if (ends := stats.interval(strata(), within))]
        return f"{sum(low - 1e-12 <= truth <= high + 1e-12 for low, high in found) / len(found):.3f}"

    def of_clusters(sizes: tuple[int, ...]) -> Drawn:
        chances = generator.beta(0.7 * 7 / 3, 0.3 * 7 / 3, len(sizes))
        pairs = enumerate(zip(sizes, chances, strict=True))
        return [[(c, float(generator.random() < p)) for c, (n, p) in pairs for _ in range(n)]]

    def of_conditions(sizes: tuple[int, ...], draw: Callable[[int], numpy.ndarray]) -> Drawn:
        return [[((k, i), float(x)) for i, x in enumerate(draw(n))] for k, n in enumerate(sizes)]

    rows: list[dict[str, object]] = []
    for sizes in UNEQUAL:
        row: dict[str, object] = {"sizes": f"conditions of {_counted(sizes)}"}
        for kind, (draw, p, within) in draws.items():
            row[kind] = covered(partial(of_conditions, sizes, draw), p, within)
        rows.append(row)
    for clusters in CLUSTERS:
        found = covered(partial(of_clusters, clusters), 0.7, (0, 1))
        rows.append({"sizes": f"clusters of {_counted(clusters)}", "shares, 0.7": found})
    return rows


def _counted(sizes: tuple[int, ...]) -> str:
    return ", ".join(f"{size}" + f" ({sizes.count(size)}x)" * (sizes.count(size) > 1) for size in dict.fromkeys(sizes))


Pairs = Callable[[numpy.random.Generator, int], tuple[numpy.ndarray, numpy.ndarray]]
REPEATS = 3


def _shares(first: float, gained: float, lost: float) -> Pairs:
    """Zeros and ones: the first side is right with this chance; of these it loses a share, of the others gains one."""

    def draw(generator: numpy.random.Generator, n: int) -> tuple[numpy.ndarray, numpy.ndarray]:
        before, luck = generator.random(n) < first, generator.random(n)
        return before.astype(float), numpy.where(before, luck >= lost, luck < gained).astype(float)

    return draw


def _scores(generator: numpy.random.Generator, n: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Scores from 0 to 1 that share how hard the case is."""
    case = generator.random(n)
    return 0.5 * case + 0.5 * generator.beta(2, 2, n), 0.5 * case + 0.5 * generator.beta(4, 2, n)


def _repeated(generator: numpy.random.Generator, n: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Zeros and ones, three repeats of a case, whose chances are the case's."""
    chance = numpy.repeat(generator.beta(0.7, 0.7, n), REPEATS)
    first, second = (generator.random(n * REPEATS) < x for x in (0.8 * chance, 0.2 + 0.8 * chance))
    return first.astype(float), second.astype(float)


PAIRED: dict[str, tuple[Pairs, float, int]] = {
    "shares 0.50 and 0.60": (_shares(0.5, 0.4, 0.2), 0.1, 1),
    "shares 0.90 and 0.92": (_shares(0.9, 0.2, 0.0), 0.02, 1),
    "equal shares 0.5": (_shares(0.5, 0.3, 0.3), 0.0, 1),
    "scores from 0 to 1": (_scores, 1 / 12, 1),
    "shares, 3 repeats of a case": (_repeated, 0.2, REPEATS),
}
"""Name → (pairs, their true difference, repeats of a case)."""


def paired_coverage(samples: int) -> list[dict[str, object]]:
    """The interval of `harness compare` beside Student's t interval of the cases' differences."""
    rows: list[dict[str, object]] = []
    generator = numpy.random.default_rng(0)
    for kind, (draw, truth, repeats) in PAIRED.items():
        for n in (6, 10, 20, 50):
            quantile, hits, widths = float(t.ppf(0.975, n - 1)), [0, 0], [0.0, 0.0]
            for _ in range(samples):
                first, second = draw(generator, n)
                differences = second - first
                stratum = [(i // repeats, float(x)) for i, x in enumerate(differences)]
                ours = paired.paired([stratum], 1.0, binary=kind != "scores from 0 to 1").interval
                means = differences.reshape(n, repeats).mean(axis=1)
                half = quantile * means.std(ddof=1) / math.sqrt(n)
                for i, ends in enumerate((ours, (means.mean() - half, means.mean() + half))):
                    hits[i] += ends is not None and ends[0] - 1e-12 <= truth <= ends[1] + 1e-12
                    widths[i] += ends[1] - ends[0] if ends else 0.0
            row: dict[str, object] = {"pairs": kind, "cases": n}
            for i, name in enumerate(("harness", "t")):
                row |= {name: f"{hits[i] / samples:.3f}", f"width ({name})": f"{widths[i] / samples:.2f}"}
            rows.append(row)
    return rows
