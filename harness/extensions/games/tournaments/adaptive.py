"""Pairings by expected information: which games say most about the order of contestants.

A pure function of what earlier rounds have brought, and of the seed.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness.api import derive_seed

from .ratings_choices import Choices, Outcome, Setting

SeatedGame = tuple[Outcome, tuple[int, ...]]
"""A game, and the seats of its contestants."""
_WIDE: Final = 2.0
"""Standard deviation of strengths where nothing is known, and that of what seats and ties are worth."""
_ROUNDS: Final = 12
"""How often strengths and their spread are estimated in turn."""
_BALANCED: Final = 1 / 3
"""Share of the cases of a round that go to the pairs that have played least. Without them whoever was lucky at first
would count as decided and hardly play again: intervals would cover 83 % to 88 % (`benchmarks/pairings.py`)."""
_SURE: Final = 2.0
"""Entropies are those of differences in so many standard deviations: an order is known where it is significant among
those of all pairs, and not where it is likely."""
_WORTH: Final = 0.5
"""A pair is drawn beside the best one, if it is worth at least this share of it."""
_DIGITS: Final = 7
"""Pairs whose information is equal up to so many digits go by lot: the rest depends on the machine."""
_NODES: Final = ((-math.sqrt(3.0), 1 / 6), (0.0, 2 / 3), (math.sqrt(3.0), 1 / 6))
"""Of Gauss and Hermite: how far a posterior mean moves, in standard deviations, and how likely."""


@functools.lru_cache(maxsize=32)
def first(count: int, most: int, units: int, turns: int, seed: int) -> Mapping[tuple[int, int], int]:
    """The first round, as `choose`; each pair has `most` cases. It is asked for often, and nothing is played yet."""
    return choose(count, [], dict.fromkeys(itertools.combinations(range(count), 2), most), units, turns, seed, 0)


def choose(
    count: int,
    games: Sequence[SeatedGame],
    left: Mapping[tuple[int, int], int],
    units: int,
    turns: int,
    seed: int,
    number: int,
) -> dict[tuple[int, int], int]:
    """How many further cases each pair of contestants 0 … `count` − 1 plays in a round.

    Strengths have the posterior of a Bradley–Terry model with a normal prior, as a normal distribution (Laplace). What
    is to be learned is the order of each two contestants; a case is worth the entropy that these orders are expected to
    lose by it (Lindley, 1956, "On a measure of the information provided by an experiment"), over the pairs that have a
    contestant of it. A third of the cases go to the pairs that have played least, the others by that. Cases are drawn
    one after another, each given those before; in one step also pairs of other contestants, which say little about each
    other.

    Args:
        count: how many contestants there are.
        games: those of earlier rounds.
        left: pair, the lower number first → how many cases it has not played.
        units: how many cases are to be drawn; fewer are where `left` has fewer.
        turns: how many games of a pair a case is: one for each seating.
        seed: what lots are drawn from.
        number: of the round, from 0.
    """
    import numpy

    rng = random.Random(derive_seed(seed, "adaptive", number))
    outcomes = [outcome for outcome, _ in games]
    settings = [Setting(seats, 2) for _, seats in games]
    means, covariance = _posterior(Choices(count, outcomes, range(len(outcomes)), settings or None))
    pairs = numpy.array([*itertools.combinations(range(count), 2)])
    rest = numpy.array([left.get((int(one), int(other)), 0) for one, other in pairs])
    drawn: Counter[tuple[int, int]] = Counter()
    units = min(units, int(rest.sum()))

    def take(i: int) -> None:
        nonlocal covariance
        drawn[int(pairs[i][0]), int(pairs[i][1])] += 1
        rest[i] -= 1
        moves, _ = _moves(means, covariance, pairs[i : i + 1], turns)
        covariance = covariance - numpy.outer(moves, moves)

    while drawn.total() < math.ceil(_BALANCED * units):
        own = numpy.bincount(pairs.ravel(), numpy.repeat(rest, 2), count)  # what each contestant has left
        take(max(rng.sample(range(len(pairs)), len(pairs)), key=lambda i: (rest[i], own[pairs[i]].sum())))
    while drawn.total() < units:
        worth = _worth(means, covariance, pairs, turns)
        worth = numpy.where(rest > 0, numpy.round(worth / worth.max(), _DIGITS), -1.0)
        order = sorted(rng.sample(range(len(pairs)), len(pairs)), key=lambda i: -worth[i])
        taken: set[int] = set()
        for i in order:
            if drawn.total() == units or worth[i] < _WORTH * worth[order[0]]:
                break
            if taken.isdisjoint(players := {*map(int, pairs[i])}):
                taken |= players
                take(i)
    return dict(drawn)


def _posterior(choices: Choices) -> tuple[Any, Any]:
    """Means and covariance of the strengths (Laplace), whose normal prior has the spread that the games show."""
    import numpy

    count, here, spread = choices.count, numpy.zeros(choices.size), _WIDE
    covariance = numpy.eye(choices.size) * _WIDE**2
    for _ in range(_ROUNDS if choices.games else 0):
        precision = numpy.full(choices.size, _WIDE**-2)
        precision[:count] = spread**-2
        for _ in range(2):
            _, slope, information = choices.likelihood(here, 0.0)
            covariance = numpy.linalg.inv(information + numpy.diag(precision))
            step = covariance @ (slope - precision * here)
            here = here + step * min(1.0, 2.0 / max(float(abs(step).max()), 1e-300))
        own = here[:count] - here[:count].mean()
        squares = float(own @ own + numpy.trace(covariance[:count, :count]))
        spread = min(_WIDE, math.sqrt(squares / count))
    return here[:count], covariance[:count, :count]


def _moves(means: Any, covariance: Any, pairs: Any, turns: int) -> tuple[Any, Any]:
    """(Per contestant and pair, the standard deviation by which a mean moves with a case of the pair; per two
    contestants, the variance of their difference)."""
    import numpy

    one, other = pairs.T
    own = numpy.diag(covariance)
    spread = numpy.maximum(own[:, None] + own - 2 * covariance, 1e-9)
    shrunk = (means[one] - means[other]) / numpy.sqrt(1 + math.pi / 8 * spread[one, other])
    won = 1 / (1 + numpy.exp(-shrunk))
    information = turns * won * (1 - won)
    return (covariance[:, one] - covariance[:, other]) / numpy.sqrt(1 / information + spread[one, other]), spread


def _worth(means: Any, covariance: Any, pairs: Any, turns: int) -> Any:
    """Per pair, the entropy that a case of it is expected to take away."""
    import numpy

    moves, spread = _moves(means, covariance, pairs, turns)
    gap = means[:, None] - means
    before, worth = _entropy(gap / numpy.sqrt(spread)), numpy.zeros(len(pairs))
    for own in pairs.T:  # [contestant, pair]: the order of that contestant and one of the pair
        row = numpy.arange(len(pairs))
        moved = moves[own, row] - moves
        after = numpy.sqrt(numpy.maximum(spread[:, own] - moved**2, 1e-9))
        expected = sum(share * _entropy((gap[own].T + node * moved) / after) for node, share in _NODES)
        lost = before[:, own] - expected
        lost[own, row] = 0.0
        worth += lost.sum(axis=0)
    return worth


def _entropy(scores: Any) -> Any:
    """Of the order of two, whose difference is so many standard deviations from 0, in nats (`_SURE`)."""
    import numpy
    from scipy.special import ndtr

    ahead = ndtr(-abs(scores) / _SURE)
    return -ahead * numpy.log(numpy.maximum(ahead, 1e-300)) - (1 - ahead) * numpy.log1p(-ahead)
