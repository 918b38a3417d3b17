"""How many cases, repeats and games it takes to tell two models apart."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from harness.api.errors import DataError
from harness.extensions.analysis.paired import MIN_PAIRS, detectable
from harness.extensions.games.tournaments.results import Game
from harness.tables import EpisodeScore
from harness.tables.stats import clustered, t_quantile

from .components import components
from .design import design

REPEATS: Final = (1, 2, 3, 5, 10)
MOST: Final = 10**9
"""Units beyond which no number is given."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How differences between two models on the same units vary.

    Attributes:
        unit: variance of a unit's own difference, which no repeat makes smaller.
        rest: variance of the difference in one repeat, around that of its unit.
        separable: whether the two were told apart. If not, all of it is in `unit`, which holds for one repeat: episodes
            of a unit may all be alike.
        shared: variance that both models have in common, and that cancels; None if one model alone was seen, whose
            units' variance then counts as if two models had nothing in common.
    """

    unit: float
    rest: float
    separable: bool = True
    shared: float | None = None

    def variance(self, repeats: float) -> float:
        """That of a unit's mean difference over so many repeats."""
        return self.unit + self.rest / repeats


def units_needed(difference: float, variance: float, power: float = 0.8, step: float = 0.0) -> int:
    """The least number of units with which a difference of this size is found with this power, at 0.05 two-sided.

    Solves `paired.detectable` for the number of units. It is at least the six that the exact test needs. `step`: the
    numbers of units are multiples of it, as those of zeros and ones are; the exact test then loses a little, which
    further units make up for (the continuity correction of McNemar's test: Fleiss, Tytun and Ury, 1980, Biometrics
    36(2)).

    Raises:
        DataError: if it takes more than a billion.
    """
    low = high = MIN_PAIRS
    while (detectable(math.sqrt(variance / high), high - 1, power) or 0.0) > difference:
        low, high = high, 2 * high
        if high > MOST:
            raise DataError(
                f"no number of cases tells models apart by {difference:g}", hint="Give a larger difference."
            )
    while high - low > 1:
        middle = (low + high) // 2
        found = (detectable(math.sqrt(variance / middle), middle - 1, power) or 0.0) <= difference
        low, high = (low, middle) if found else (middle, high)
    return math.ceil(high / 4 * (1 + math.sqrt(1 + 4 * step / (high * difference))) ** 2)


def least_gap(numbers: Iterable[float]) -> float:
    """How close the two closest different numbers are, rounding errors aside; 0 if there are no two.

    >>> least_gap([1.0, 0.0, 1.0]), least_gap([0.25, 1.0, 0.5])
    (1.0, 0.25)
    """
    values = sorted({*numbers})
    noise = 1e-9 * (values[-1] - values[0]) if values else 0.0
    return min((gap for one, next_ in itertools.pairwise(values) if (gap := next_ - one) > noise), default=0.0)


def worst(width: float) -> Spread:
    """What a number between two bounds varies by at most, where nothing else is known: half of the units are at each
    end, with all of their episodes."""
    return Spread(2 * (width / 2) ** 2, 0.0, separable=False)


def of_scores(scores: Iterable[EpisodeScore], metric: str, cluster: Sequence[str] = ()) -> Spread | None:
    """By finished runs; None if they do not say. Cases of several models say what these have in common."""
    one = design(scores, metric, cluster, intervals=False)
    if one.found is None:
        return None
    own = one.found.variance("case × model")
    if one.unit is None:  # one episode a case: what it varies by is one number
        return Spread(2 * one.rest, 0.0, separable=False)
    if one.models > 1 and "case × model" not in one.found.alike:
        return Spread(2 * own, 2 * one.rest, shared=one.unit)
    if one.models > 1:  # one repeat: the model's own part of a case is in the rest
        return Spread(2 * one.rest, 0.0, separable=False, shared=one.unit)
    return Spread(2 * one.of_unit, 2 * one.rest)


@dataclass(frozen=True, slots=True)
class DealSpread:
    """How the points that one contestant has more than another vary, over games of two.

    Attributes:
        spread: of a deal with all of its games, and of one game.
        seat: how many points the first seat has more; it cancels where seats are exchanged.
        seat_half: half of its 95 % interval, over deals; None of one deal.
        games: how many games there are.
        deals: how many deals they are of.
    """

    spread: Spread
    seat: float
    seat_half: float | None
    games: int
    deals: int


def of_games(games: Iterable[Game]) -> DealSpread | None:
    """By finished tournaments; None without two games of two contestants in their seats.

    A game is 1 where the first by name won, −1 where the other did, 0 of a draw. Each pair has a mean in each seating,
    so that strengths and seats are no luck; what varies is the deal and the game.
    """
    values, cells, deals, ahead = list[float](), list[object](), list[Hashable](), list[float]()
    for game in games:
        if len(game.standing) != 2 or set(game.seats) != set(game.standing):
            continue
        one, other = sorted(game.standing)
        points = float((game.standing[one] > game.standing[other]) - (game.standing[one] < game.standing[other]))
        first = game.seats[one] < game.seats[other]
        values.append(points)
        cells.append((one, other, game.game, first))
        deals.append((one, other, game.game, game.cluster))
        ahead.append(points if first else -points)
    found = components(values, cells, {"deal": deals}, deals, intervals=False) if values else None
    if found is None:
        return None
    rest, seat = max(0.0, found.rest.variance), clustered([[*zip(deals, ahead, strict=True)]])
    half = None if seat.stderr is None else t_quantile(seat.df) * seat.stderr
    spread = Spread(rest, 0.0, separable=False) if found.alike else Spread(found.variance("deal"), rest, shared=0.0)
    return DealSpread(spread, seat.value or 0.0, half, len(values), len({*deals}))
