"""How often the 95 % intervals of ratings cover the true strengths, beside a bootstrap's, and how long ratings take.

python benchmarks/run.py ratings ratings_seats ratings_bootstrap ratings_speed
"""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

import numpy

from harness.extensions.games.tournaments import ratings_model, ratings_sequential
from harness.extensions.games.tournaments.ratings_choices import Outcome, Setting
from harness.extensions.games.tournaments.ratings_model import Strengths

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


@dataclass(frozen=True)
class Seated:
    """Tournaments in which seats and deals matter. Strengths lie between −1 and 1.

    Attributes:
        advantage: log-strength of the first seat over the last.
        luck: standard deviation over deals of the difference between two seats.
        uneven: whether some pairings play many times as many deals as others.
        games: how many games there are, each with a quarter of the deals of the one before, and with the advantage on
            the other side; all weigh as much as each other.
    """

    contestants: int = 4
    seats: int = 2
    deals: int = 20
    advantage: float = 0.0
    luck: float = 0.0
    nu: float = 0.0
    rotated: bool = True
    uneven: bool = False
    games: int = 1

    def drawn(self, generator: Generator) -> tuple[list[Outcome], list[Hashable], list[Setting]]:
        """Games, which of them are one observation, and their seats and deals."""
        true = numpy.linspace(-SPREAD, SPREAD, self.contestants)
        worth = numpy.linspace(self.advantage / 2, -self.advantage / 2, self.seats)
        games: list[Outcome] = []
        clusters: list[Hashable] = []
        settings: list[Setting] = []
        for number, deal in ((g, d) for g in range(self.games) for d in range(self.deals // 4**g)):
            dealt = generator.normal(size=self.seats) * self.luck / math.sqrt(2)
            here = worth * (-1) ** number + dealt - dealt.mean()
            for players in itertools.combinations(range(self.contestants), self.seats):
                if self.uneven and deal >= self.deals // (1 + sum(players)):
                    continue
                for turn in range(self.seats if self.rotated else 1):
                    sitting = players[turn:] + players[:turn]
                    games.append(self._played(generator, sitting, true[[*sitting]] + here))
                    clusters.append((number, deal, players))
                    settings.append(Setting(tuple(range(self.seats)), self.seats, f"game {number}", deal))
        counts = Counter(one.game for one in settings)
        weights = {game: len(settings) / len(counts) / count for game, count in counts.items()}
        return games, clusters, [replace(one, weight=weights[one.game]) for one in settings]

    def _played(self, generator: Generator, players: tuple[int, ...], strengths: numpy.ndarray) -> Outcome:
        if not self.nu:
            return [*zip(players, map(float, strengths + generator.gumbel(size=len(players))), strict=True)]
        parts = [*numpy.exp(strengths), self.nu * math.exp(strengths.mean())]
        end = generator.choice(3, p=numpy.array(parts) / sum(parts))
        return [(players[0], (1.0, 0.0, 0.5)[end]), (players[1], (0.0, 1.0, 0.5)[end])]


SEATED: dict[str, Seated] = {
    "no advantage": Seated(),
    "advantage 1": Seated(advantage=1),
    "advantage 2": Seated(advantage=2),
    "advantage 1, seats not rotated": Seated(advantage=1, deals=40, rotated=False),
    "luck 1": Seated(luck=1),
    "luck 2": Seated(luck=2),
    "advantage 1, luck 1": Seated(advantage=1, luck=1),
    "advantage 1, luck 2": Seated(advantage=1, luck=2),
    "ties": Seated(nu=NU),
    "advantage 2, ties": Seated(advantage=2, nu=NU),
    "advantage 1, luck 1, ties": Seated(advantage=1, luck=1, nu=NU),
    "uneven pairings": Seated(contestants=5, deals=40, uneven=True),
    "advantage 1, uneven pairings": Seated(contestants=5, advantage=1, deals=40, uneven=True),
    "advantage 1, luck 1, uneven pairings": Seated(contestants=5, advantage=1, luck=1, deals=40, uneven=True),
    "three seats, advantage 1": Seated(seats=3, deals=12, advantage=1),
    "three seats, advantage 1, luck 1": Seated(seats=3, deals=12, advantage=1, luck=1),
    "four seats, advantage 1": Seated(contestants=5, seats=4, deals=10, advantage=1),
    "four seats, advantage 1, luck 1": Seated(contestants=5, seats=4, deals=10, advantage=1, luck=1),
    "two games, advantage 1": Seated(advantage=1, deals=40, games=2),
    "two games, advantage 1, luck 1": Seated(advantage=1, luck=1, deals=40, games=2),
}


def seats(samples: int) -> list[dict[str, object]]:
    """Coverage, and by how much differences are stretched, with and without terms for seats and deals."""
    rows: list[dict[str, object]] = []
    for name, design in SEATED.items():
        row: dict[str, object] = {"tournaments": name}
        true = numpy.linspace(-SPREAD, SPREAD, design.contestants)
        for how in ("with", "without"):
            generator, covered, stretched, count = numpy.random.default_rng(0), 0, 0.0, 0
            for _ in range(samples):
                games, clusters, settings = design.drawn(generator)
                found = ratings_model.fit(design.contestants, games, clusters, settings if how == "with" else None)
                if found is None or found.covariance is None:
                    continue
                half = found.quantile * numpy.sqrt(numpy.diag(found.covariance))
                covered += int((abs(found.values - true) <= half).sum())
                stretched += float(found.values @ true / (true @ true))
                count += 1
            row[f"covered {how}"] = f"{covered / count / design.contestants:.3f}"
            row[f"differences {how}"] = f"{stretched / count:.2f}"
        rows.append(row)
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
