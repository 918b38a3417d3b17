"""How often 95 % intervals of a bounded mean cover the truth: the one that tables use, a t interval and a bootstrap.

python benchmarks/run.py intervals
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy
from scipy.stats import t

from harness.tables import stats

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
    """A row for each distribution and n: the share of samples whose interval covers the mean, by kind of interval."""
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
