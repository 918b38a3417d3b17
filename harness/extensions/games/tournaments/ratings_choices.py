"""Games as choices among contestants, and the likelihood of strengths in them."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

_FAR: Final = 12.0
"""A parameter beyond this grows without end: odds of 160,000 to 1."""
_STEPS: Final = 200
_CHUNK: Final = 2**21
"""So many probabilities are held at once."""

Outcome = Sequence[tuple[int, float]]
"""One game: each contestant's number, and its return."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a game was played under.

    Attributes:
        seats: the seat of each of its contestants, from 0, in the order of the outcome.
        count: how many seats the game has.
        game: which game it is; each has seats of its own.
        deal: what luck was dealt; equal for games with the same.
        weight: how much it counts.
    """

    seats: tuple[int, ...]
    count: int
    game: Hashable = ""
    deal: Hashable = None
    weight: float = 1.0


@dataclass(slots=True)
class _Block:
    """All choices from sets of the same size.

    Attributes:
        columns: per set, the parameters that its choices depend on.
        features: per possible choice, the weight of each of these parameters in its log-probability.
        counts: how often each set was chosen from.
        sets, chosen, clusters, games, weights: one entry a choice that was made.
        size: how many contestants such a set has.
    """

    columns: Any
    features: Any
    counts: Any
    sets: Any
    chosen: Any
    clusters: Any
    games: Any
    weights: Any
    size: int


_Made = tuple[tuple[int, ...], tuple[int, ...], int]
"""A choice: who was left, who of these came first, and in which game."""


class Choices:
    """Games as choices; the likelihood of parameters: log-strengths of contestants, of seats, and the log δ of ties."""

    def __init__(
        self,
        count: int,
        games: Sequence[Outcome],
        clusters: Sequence[Hashable],
        settings: Sequence[Setting] | None = None,
    ) -> None:
        import numpy

        made: dict[int, list[_Made]] = {}
        numbers: dict[Hashable, int] = {}
        self.decided = False
        self._clusters = [numbers.setdefault(cluster, len(numbers)) for cluster in clusters]
        for i, game in enumerate(games):
            returns = dict(game)
            left = sorted(returns)
            while len(left) > 1:
                top = max(returns[player] for player in left)
                first = tuple(player for player in left if returns[player] == top)
                made.setdefault(len(left), []).append((tuple(left), first, i))
                left = [player for player in left if returns[player] < top]
                self.decided = self.decided or bool(left)
        self.count, self.clusters, self.games, self.settings = count, len(numbers), games, settings
        self.sizes = sorted({1, *(len(first) for rows in made.values() for _, first, _ in rows)})
        self.seats, self.first_tie = self._seats(settings or ())
        self.size = self.first_tie + len(self.sizes) - 1
        self.level = numpy.zeros((self.size, self.size))
        self.level[:count, :count] = 1.0  # the likelihood does not know the mean of strengths
        for own in self.seats.values():  # nor that of seats
            self.level[numpy.ix_(own, own)] = 1.0
        self.blocks = [self._block(size, made[size]) for size in sorted(made)]
        self._observed = numpy.zeros(self.size)
        for block in self.blocks:
            chosen = block.features[block.chosen] * block.weights[:, None]
            numpy.add.at(self._observed, block.columns[block.sets], chosen)

    def _seats(self, settings: Iterable[Setting]) -> tuple[dict[Hashable, list[int]], int]:
        """(Game → the parameters of its seats, the first parameter after these)."""
        counts: dict[Hashable, int] = {}
        for one in settings:
            counts[one.game] = max(counts.get(one.game, 0), one.count)
        seats, start = {}, self.count
        for game, count in counts.items():
            if count > 1:
                seats[game] = list(range(start, start + count))
                start += count
        return seats, start

    def is_confounded(self) -> bool:
        """Whether no likelihood can tell seats from the contestants in them."""
        import numpy

        _, _, information = self.likelihood(numpy.zeros(self.size), 0.0)
        values = numpy.linalg.eigvalsh((information + self.level)[: self.first_tie, : self.first_tie])
        return bool(values[0] < 1e-9 * values[-1])

    def sitting(self, game: int, players: Iterable[int]) -> list[int]:
        """The seats of some contestants of a game."""
        if self.settings is None:
            return []
        where = dict(zip((player for player, _ in self.games[game]), self.settings[game].seats, strict=True))
        return [where[player] for player in players]

    def _block(self, size: int, made: Sequence[_Made]) -> _Block:
        import numpy

        possible = [one for k in self.sizes for one in itertools.combinations(range(size), k)]
        places = {one: i for i, one in enumerate(possible)}
        members = 2 * size if self.seats else size
        features = numpy.zeros((len(possible), members + len(self.sizes) - 1))
        for i, one in enumerate(possible):
            features[i, list(one)] = 1 / len(one)
            if self.seats:
                features[i, [size + j for j in one]] = 1 / len(one)
            if len(one) > 1:
                features[i, members + self.sizes.index(len(one)) - 1] = 1.0
        sets: dict[tuple[int, ...], int] = {}
        rows = []
        for players, _, game in made:
            own = self.seats[self.settings[game].game] if self.seats and self.settings else []
            where = tuple(own[seat] for seat in self.sitting(game, players)) if own else ()
            rows.append(sets.setdefault((*players, *where), len(sets)))
        chosen = [places[tuple(map(players.index, first))] for players, first, _ in made]
        extra = numpy.tile(numpy.arange(self.first_tie, self.size), (len(sets), 1))
        columns = numpy.hstack([numpy.array(list(sets)), extra])
        numbers = [game for _, _, game in made]
        weights = numpy.array([self.settings[game].weight if self.settings else 1.0 for game in numbers])
        counts = numpy.bincount(rows, weights, minlength=len(sets))
        clusters = [self._clusters[game] for game in numbers]
        sets_of, chosen_of, clusters_of, games_of = (numpy.array(x) for x in (rows, chosen, clusters, numbers))
        return _Block(columns, features, counts, sets_of, chosen_of, clusters_of, games_of, weights, size)

    def solved(self, prior: float) -> tuple[Any, Any] | None:
        """The maximum and the information there, by Newton's method; None if there is none, or it is too far.

        Args:
            prior: how many wins, and losses, each parameter has against 0.
        """
        import numpy

        here = numpy.zeros(self.size)
        value, slope, information = self.likelihood(here, prior)
        ridge = self.level if not prior else 0.0
        for _ in range(_STEPS):
            step = numpy.linalg.solve(information + ridge + 1e-12 * numpy.eye(self.size), slope)
            step *= min(1.0, 2.0 / max(float(abs(step).max()), 1e-300))
            scale = 1.0
            while True:
                there = here + scale * step
                likelihood, slope_there, information_there = self.likelihood(there, prior)
                if likelihood >= value - 1e-9 * max(1.0, abs(value)) or scale < 1e-6:
                    break
                scale /= 2
            here, value, slope, information = there, likelihood, slope_there, information_there
            if not prior and float(abs(here).max()) > _FAR:
                return None
            if float(abs(step).max()) < 1e-10:
                return here, information
        return (here, information) if prior else None

    def likelihood(self, parameters: Any, prior: float) -> tuple[float, Any, Any]:
        """The log-likelihood (up to a constant) with its gradient and the negative of its second derivatives."""
        import numpy

        value, slope = float(self._observed @ parameters), self._observed.copy()
        information = numpy.zeros((self.size, self.size))
        for block in self.blocks:
            features, width = block.features, block.features.shape[1]
            products = (features[:, :, None] * features[:, None, :]).reshape(len(features), -1)
            every = max(1, _CHUNK // max(features.size, width * width))
            for start in range(0, len(block.columns), every):
                columns, counts = block.columns[start : start + every], block.counts[start : start + every]
                shares, logs = shares_of(parameters[columns] @ features.T)
                value -= float(counts @ logs)
                means = shares @ features
                numpy.add.at(slope, columns, -counts[:, None] * means)
                squares = (shares @ products).reshape(-1, width, width) - means[:, :, None] * means[:, None, :]
                numpy.add.at(information, (columns[:, :, None], columns[:, None, :]), counts[:, None, None] * squares)
        if prior:
            won = 1 / (1 + numpy.exp(-parameters))
            value += prior * float((numpy.log(won) + numpy.log1p(-won)).sum())
            slope += prior * (1 - 2 * won)
            information += numpy.diag(2 * prior * won * (1 - won))
        return value, slope, information

    def scores(self, parameters: Any) -> Any:
        """Each cluster's gradient of the log-likelihood."""
        import numpy

        scores = numpy.zeros((self.clusters, self.size))
        for block in self.blocks:
            shares, _ = shares_of(parameters[block.columns] @ block.features.T)
            surprise = block.features[block.chosen] - (shares @ block.features)[block.sets]
            surprise = surprise * block.weights[:, None]
            numpy.add.at(scores, (block.clusters[:, None], block.columns[block.sets]), surprise)
        return scores


def shares_of(utilities: Any) -> tuple[Any, Any]:
    """The probability of each choice, and the logarithm of what they are divided by."""
    import numpy

    top = utilities.max(axis=1, keepdims=True)
    powers = numpy.exp(utilities - top)
    totals = powers.sum(axis=1, keepdims=True)
    return powers / totals, (numpy.log(totals) + top)[:, 0]
