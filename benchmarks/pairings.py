"""What pairings by expected information are worth beside a round robin of as many games.

python benchmarks/run.py pairings
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass

import numpy
from scipy.special import stdtr

from harness.extensions.games.tournaments import adaptive, ratings_model
from harness.extensions.games.tournaments.ratings_choices import Setting
from harness.tables import stats

Generator = numpy.random.Generator
Pair = tuple[int, int]


@dataclass(frozen=True)
class Pool:
    """Contestants whose strengths lie between −`spread` and `spread`, and how many cases a pair plays on average."""

    contestants: int
    spread: float
    cases: int
    clustered: bool = False

    @property
    def strengths(self) -> numpy.ndarray:
        """In log-odds: evenly spaced, or half of them within a tenth of the range."""
        if not self.clustered:
            return numpy.linspace(-self.spread, self.spread, self.contestants)
        half = self.contestants // 2
        near = numpy.linspace(0.8 * self.spread, self.spread, half)
        far = numpy.linspace(-self.spread, 0.4 * self.spread, self.contestants - half)
        return numpy.concatenate([far, near])


POOLS: dict[str, Pool] = {
    "8 contestants, 70 % against the weakest": Pool(8, 0.42, 10),
    "8 contestants, 88 % against the weakest": Pool(8, 1.0, 10),
    "8 contestants, 98 % against the weakest": Pool(8, 2.0, 10),
    "12 contestants, 98 % against the weakest": Pool(12, 2.0, 5),
    "12 contestants, half of them close together": Pool(12, 2.0, 5, clustered=True),
}
ROUNDS = 10


def _cases(generator: Generator, true: numpy.ndarray, pair: Pair, count: int) -> list[adaptive.SeatedGame]:
    """Both sides of so many cases; the first seat is better by 0.5."""
    games: list[adaptive.SeatedGame] = []
    for one, other in [pair, pair[::-1]] * count:
        won = float(generator.random() < 1 / (1 + math.exp(true[other] - true[one] - 0.5)))
        games.append(([(one, won), (other, 1 - won)], (0, 1)))
    return games


def _played(generator: Generator, true: numpy.ndarray, cases: int, rounds: int | None, seed: int) -> list[float] | None:
    """(Share of pairs in the right order, share that is significantly so, share significantly wrong, coverage, whether
    the best is on top) of one tournament; None without intervals. Without `rounds` a round robin."""
    count = len(true)
    pairs = [*itertools.combinations(range(count), 2)]
    games: list[adaptive.SeatedGame] = []
    clusters: list[tuple[Pair, int]] = []
    done: Counter[Pair] = Counter()
    for number in range(rounds or 1):
        if rounds is None:
            drawn = dict.fromkeys(pairs, cases)
        else:
            units = cases * len(pairs) * (number + 1) // rounds - done.total()
            left = {pair: 8 * cases - done[pair] for pair in pairs}
            drawn = adaptive.choose(count, games, left, units, 2, seed, number)
        for pair, times in sorted(drawn.items()):
            games += _cases(generator, true, pair, times)
            clusters += [(pair, done[pair] + i // 2) for i in range(2 * times)]
            done[pair] += times
    settings = [Setting(seats, 2, "", case) for (_, seats), (_, case) in zip(games, clusters, strict=True)]
    found = ratings_model.fit(count, [outcome for outcome, _ in games], clusters, settings)
    if found is None or found.covariance is None:
        return None
    gaps = [float(found.values[i] - found.values[j]) for i, j in pairs]
    right = [(gap > 0) == (true[i] > true[j]) for gap, (i, j) in zip(gaps, pairs, strict=True)]
    spread = found.covariance
    errors = [math.sqrt(max(float(spread[i, i] + spread[j, j] - 2 * spread[i, j]), 1e-18)) for i, j in pairs]
    scores = [-abs(gap) / error for gap, error in zip(gaps, errors, strict=True)]
    sure = [p < 0.05 for p in stats.holm([float(2 * stdtr(found.clusters - 1, score)) for score in scores])]
    half = found.quantile * numpy.sqrt(numpy.diag(spread))
    known = [ok for ok, certain in zip(right, sure, strict=True) if certain]
    top = float(found.values.argmax() == true.argmax())
    covered = float((abs(found.values - true) <= half).mean())
    return [sum(right) / len(pairs), sum(known) / len(pairs), (len(known) - sum(known)) / len(pairs), covered, top]


def pairings(samples: int) -> list[dict[str, object]]:
    """Both designs, from the same strengths in as many shuffled pools."""
    rows: list[dict[str, object]] = []
    for name, pool in POOLS.items():
        for how, rounds in (("round robin", None), ("adaptive", ROUNDS)):
            results = []
            for seed in range(samples):
                generator = numpy.random.default_rng(seed)
                true = generator.permutation(pool.strengths - pool.strengths.mean())
                results.append(_played(generator, true, pool.cases, rounds, seed))
            right, sure, wrong, covered, top = numpy.mean([one for one in results if one is not None], axis=0)
            rows.append(
                {
                    "pool": name,
                    "games": 2 * pool.cases * math.comb(pool.contestants, 2),
                    "pairing": how,
                    "order right": f"{right:.3f}",
                    "order certain": f"{sure:.3f}",
                    "certain and wrong": f"{wrong:.4f}",
                    "best on top": f"{top:.2f}",
                    "covered": f"{covered:.3f}",
                }
            )
    return rows
