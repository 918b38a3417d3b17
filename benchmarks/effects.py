"""How often the 95 % intervals of `effects` cover the true differences, and how often a factor without effect passes
its test; and how long the tables take.

python benchmarks/run.py effects effects_speed
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy

from harness.extensions.analysis import effects_model

TRUE = ((0.08, 0.0, -0.08), (0.0, 0.0))
"""The effects of three and of two levels on the chance of a right answer: something, and nothing."""
Cells = Callable[[numpy.random.Generator, int], list[tuple[int, int, int]]]


def _full(generator: numpy.random.Generator, questions: int) -> list[tuple[int, int, int]]:
    return [(q, a, b) for q in range(questions) for a in range(3) for b in range(2)]


def _gaps(generator: numpy.random.Generator, questions: int) -> list[tuple[int, int, int]]:
    """Three in ten episodes failed, and one combination was never played."""
    return [cell for cell in _full(generator, questions) if generator.random() < 0.7 and cell[1:] != (2, 1)]


def _apart(generator: numpy.random.Generator, questions: int) -> list[tuple[int, int, int]]:
    """Every condition has questions of its own."""
    return [(q, q % 3, q // 3 % 2) for q in range(questions)]


DESIGNS: dict[str, tuple[Cells, tuple[int, ...]]] = {
    "every question in every condition": (_full, (8, 20, 60)),
    "30 % of episodes failed, one combination missing": (_gaps, (8, 20, 60)),
    "each condition has its own questions": (_apart, (30, 60, 180)),
}


def coverage(samples: int) -> list[dict[str, object]]:
    """Zeros and ones; questions differ in how hard they are."""
    rows: list[dict[str, object]] = []
    generator = numpy.random.default_rng(0)
    for name, (design, sizes) in DESIGNS.items():
        for questions in sizes:
            covered, intervals, tests, found = 0, 0, [0, 0], [0, 0]
            for _ in range(samples):
                cells, hard = design(generator, questions), generator.uniform(-0.25, 0.25, questions)
                chance = [0.6 + hard[q] + TRUE[0][a] + TRUE[1][b] for q, a, b in cells]
                right = (generator.random(len(cells)) < numpy.array(chance)).astype(float)
                factors = [[a for _, a, _ in cells], [b for _, _, b in cells]]
                fit = effects_model.fit(list(map(float, right)), factors, [q for q, _, _ in cells])
                for i, term in enumerate(fit.terms):
                    tests[i] += term.pvalue is not None
                    found[i] += term.pvalue is not None and term.pvalue < 0.05
                    for level, truth in zip(term.levels, TRUE[i], strict=False):
                        if level.interval is not None:
                            intervals += 1
                            covered += level.interval[0] <= truth <= level.interval[1]
            rows.append(
                {
                    "design": name,
                    "questions": questions,
                    "covered": f"{covered / intervals:.3f}",
                    "no effect, p < 0.05": f"{found[1] / max(tests[1], 1):.3f}",
                    "an effect, p < 0.05": f"{found[0] / max(tests[0], 1):.3f}",
                }
            )
    return rows


def speed(episodes: int) -> list[dict[str, object]]:
    """5 × 4 × 4 × 10 conditions, main effects and pairs."""
    generator, rows = numpy.random.default_rng(0), []
    sizes = (5, 4, 4, 10)
    factors = [generator.integers(0, size, episodes).tolist() for size in sizes]
    numbers = (generator.random(episodes) < 0.6).astype(float).tolist()
    clusters = [i % max(episodes // 800, 2) for i in range(episodes)]
    effects_model.fit(numbers[:100], [factor[:100] for factor in factors], clusters[:100])
    for pairs in (False, True):
        start = time.process_time()
        effects_model.fit(numbers, factors, clusters, pairs=pairs)
        rows.append({"episodes": episodes, "pairs": pairs, "CPU s": f"{time.process_time() - start:.1f}"})
    return rows
