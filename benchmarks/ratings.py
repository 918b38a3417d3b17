"""How often the 95 % intervals of ratings cover the true strengths, beside a bootstrap's, and how long ratings take.

python benchmarks/run.py ratings ratings_bootstrap ratings_speed
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Sequence

import numpy

from harness.extensions.games.tournaments import ratings_model, ratings_sequential
from harness.extensions.games.tournaments.ratings_model import Outcome, Strengths

Generator = numpy.random.Generator
SPREAD = 1.0
"""Log-strengths lie between −1 and 1: the best wins 88 % of its games against the weakest."""
NU = 0.7
"""Davidson's ν: equal contestants draw 26 % of their games."""


def _pairs(generator: Generator, strengths: numpy.ndarray, games: int, nu: float = 0.0) -> list[Outcome]:
    """So many games of each pair."""
    made: list[Outcome] = []
    for one, other in itertools.combinations(range(len(strengths)), 2):
        parts = [math.exp(strengths[one]), math.exp(strengths[other])]
        parts.append(nu * math.sqrt(parts[0] * parts[1]))
        for end in generator.choice(3, games, p=numpy.array(parts) / sum(parts)):
            made.append([(one, (1.0, 0.0, 0.5)[end]), (other, (0.0, 1.0, 0.5)[end])])
    return made


def _ranked(generator: Generator, strengths: numpy.ndarray, games: int, sides: int = 4) -> list[Outcome]:
    """So many games of four contestants each, drawn at random."""
    made: list[Outcome] = []
    for _ in range(games):
        players = generator.choice(len(strengths), sides, replace=False)
        returns = strengths[players] + generator.gumbel(size=sides)
        made.append([(int(player), float(x)) for player, x in zip(players, returns, strict=True)])
    return made


Design = Callable[[Generator, numpy.ndarray, int], list[Outcome]]
DESIGNS: dict[str, tuple[Design, int, tuple[int, ...]]] = {
    "Bradley–Terry, 4 contestants, games a pair": (_pairs, 4, (4, 10, 20, 50)),
    "Bradley–Terry, 10 contestants, games a pair": (_pairs, 10, (2, 4, 10, 20)),
    "Davidson, 4 contestants, games a pair": (lambda g, s, n: _pairs(g, s, n, NU), 4, (4, 10, 20, 50)),
    "Davidson, 10 contestants, games a pair": (lambda g, s, n: _pairs(g, s, n, NU), 10, (2, 4, 10, 20)),
    "Plackett–Luce, 6 contestants, games of four": (_ranked, 6, (20, 50, 200)),
    "Plackett–Luce, 12 contestants, games of four": (_ranked, 12, (40, 100, 400)),
}


def coverage(samples: int) -> list[dict[str, object]]:
    """Tournaments with known strengths. Where a strength has no finite estimate its interval is that with the prior."""
    rows: list[dict[str, object]] = []
    generator = numpy.random.default_rng(0)
    for name, (design, count, sizes) in DESIGNS.items():
        true = numpy.linspace(-SPREAD, SPREAD, count)
        for games in sizes:
            covered, prior, halves = 0, 0, []
            for _ in range(samples):
                made = design(generator, true, games)
                found = ratings_model.fit(count, made, range(len(made)))
                if found is None or found.covariance is None:
                    continue
                half = found.quantile * numpy.sqrt(numpy.diag(found.covariance))
                ends = [found.open_ends.get(i, 0) for i in range(count)]
                low = numpy.where(numpy.equal(ends, -1), -math.inf, found.values - half)
                high = numpy.where(numpy.equal(ends, 1), math.inf, found.values + half)
                covered += int(((low <= true) & (true <= high)).sum())
                prior += found.prior
                halves.append(float(half.mean()))
            rows.append(
                {
                    "games": name,
                    "n": games,
                    "covered": f"{covered / samples / count:.3f}",
                    "with the prior": f"{prior / samples:.3f}",
                    "± Elo points": round(ratings_model.ELO * float(numpy.mean(halves))),
                }
            )
    return rows


def bootstrap(samples: int, resamples: int) -> list[dict[str, object]]:
    """The percentile interval of estimates from games that are drawn with replacement, for the same tournaments."""
    rows: list[dict[str, object]] = []
    generator = numpy.random.default_rng(0)
    plain, _, draws, *_ = DESIGNS
    for name, games in ((plain, 4), (plain, 10), (plain, 20), (draws, 4), (draws, 10)):
        design, count, _ = DESIGNS[name]
        true = numpy.linspace(-SPREAD, SPREAD, count)
        covered = {"bootstrap": 0, "ours": 0}
        for _ in range(samples):
            made = design(generator, true, games)
            found = ratings_model.fit(count, made, range(len(made)))
            assert found is not None and found.covariance is not None
            half = found.quantile * numpy.sqrt(numpy.diag(found.covariance))
            covered["ours"] += int((abs(found.values - true) <= half).sum())
            drawn = (_resampled(generator, count, made) for _ in range(resamples))
            values = numpy.array([one.values for one in drawn if one is not None])
            low, high = numpy.quantile(values, [0.025, 0.975], axis=0)
            covered["bootstrap"] += int(((low <= true) & (true <= high)).sum())
        shares = {key: f"{value / samples / count:.3f}" for key, value in covered.items()}
        rows.append({"games": name, "n": games, **shares})
    return rows


def _resampled(generator: Generator, count: int, made: Sequence[Outcome]) -> Strengths | None:
    games = [made[i] for i in generator.integers(0, len(made), len(made))]
    return ratings_model.fit(count, games, range(len(games)))


def speed(games: int) -> list[dict[str, object]]:
    """Twenty contestants; two games of a deal are one observation."""
    generator, rows = numpy.random.default_rng(0), []
    true = numpy.linspace(-SPREAD, SPREAD, 20)
    pairs = _ranked(generator, true, games, 2)
    drawn: list[Outcome] = [[(p, float(round(x))) for p, x in game] for game in pairs]
    several = _ranked(generator, true, games, 5)
    clusters = [i // 2 for i in range(games)]
    ratings_model.fit(20, pairs[:200], clusters[:200])
    todo: dict[str, Callable[[], object]] = {
        "Bradley–Terry": lambda: ratings_model.fit(20, pairs, clusters),
        "Davidson": lambda: ratings_model.fit(20, drawn, clusters),
        "Plackett–Luce, games of five": lambda: ratings_model.fit(20, several, clusters),
        "Elo": lambda: ratings_sequential.played(20, pairs, clusters, "elo", 16),
        "openskill": lambda: ratings_sequential.played(20, pairs, clusters, "openskill", 16),
    }
    for name, rate in todo.items():
        start = time.process_time()
        rate()
        rows.append({"model": name, "games": games, "CPU s": f"{time.process_time() - start:.2f}"})
    return rows
