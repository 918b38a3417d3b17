"""Ratings that change from game to game: Elo, and the update of Weng and Lin that the package openskill has.

Such a rating depends on the order of games, which means nothing where contestants do not learn. So it is averaged over
random orders, all of them at once: every array below has a row for each order.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, Final, Literal

from .ratings_choices import Outcome
from .ratings_model import ELO, Strengths

Update = Literal["elo", "openskill"]

ORDERS: Final = 100
RESAMPLES: Final = 300
"""A rating is the mean over so many orders of all games, and its interval comes from so many samples of them; of more
than 1,000 games from fewer, at least a third, since chance matters less there."""
_SEED: Final = 2011
_SIGMA, _BETA, _KAPPA = 2.0, 1.0, 1e-4
"""Of openskill's defaults, in units of its β (its μ, 25, has no meaning): how uncertain a new contestant is, how much
chance a game has, and the least factor of a variance."""


def played(count: int, games: Sequence[Outcome], clusters: Sequence[Hashable], update: Update, k: float) -> Strengths:
    """Rate contestants 0 … `count` − 1.

    "elo" (Elo, 1978) adds K(s − e) to a rating for the points s of a game (1, ½ or 0) of which e were expected. It is
    for games of two. "openskill" is Algorithm 4 of Weng and Lin (2011): a Bayesian approximation of the model of
    Plackett and Luce, for games of any size, in which every contestant has a mean and a variance. A contestant's skill
    has no drift here (τ = 0).

    Values and covariance are in units of log-strength, as those of `ratings_model.fit`. The covariance is that of
    samples of clusters with replacement, each played in an order of its own. The order of `games` does not matter.

    Args:
        count: how many contestants there are.
        games: at least one.
        clusters: which games are one observation.
        update: what a game changes.
        k: Elo's K, in Elo points.
    """
    import numpy

    generator = numpy.random.default_rng(_SEED)
    groups: dict[Hashable, list[tuple[tuple[int, int], ...]]] = {}
    for game, cluster in zip(games, clusters, strict=True):
        groups.setdefault(cluster, []).append(_places(game))
    members = sorted(sorted(group) for group in groups.values())
    seats = max(len(game) for game in games)
    every = [game for group in members for game in group]
    table = numpy.full((len(every) + 1, seats, 2), -1)  # the last line is not a game
    for line, game in zip(table, every, strict=False):
        line[: len(game)] = game
    ends = numpy.cumsum([len(group) for group in members])
    orders, samples = (round(most * max(1 / 3, min(1, 1_000 / len(every)))) for most in (ORDERS, RESAMPLES))
    plays = [generator.permutation(len(every)) for _ in range(orders)]
    for _ in range(samples if len(members) > count else 0):
        drawn = generator.integers(0, len(members), len(members))
        chosen = numpy.concatenate([numpy.arange(ends[i] - len(members[i]), ends[i]) for i in drawn])
        plays.append(generator.permutation(chosen))
    lines = numpy.full((len(plays), max(map(len, plays))), len(every))
    for row, play in zip(lines, plays, strict=True):
        row[: len(play)] = play
    rated = _elo(count, table, lines, k) / ELO if update == "elo" else _openskill(count, table, lines)
    rated -= rated.mean(axis=1, keepdims=True)
    spread = numpy.cov(rated[orders:].T) if len(members) > count else None
    return Strengths(rated[:orders].mean(axis=0), spread, len(members))


def _places(game: Outcome) -> tuple[tuple[int, int], ...]:
    """(contestant, place) in order of contestants; the first place is 0, and equal returns share one."""
    places = {value: i for i, value in enumerate(sorted({value for _, value in game}, reverse=True))}
    return tuple(sorted((player, places[value]) for player, value in game))


def _elo(count: int, table: Any, orders: Any, k: float) -> Any:
    import numpy

    ratings = numpy.zeros(len(orders) * (count + 1))  # each order's last is that of no contestant
    lines = numpy.arange(len(orders)) * (count + 1)
    firsts, seconds = (numpy.where(table[:, seat, 0] < 0, count, table[:, seat, 0]) for seat in (0, 1))
    points = (1 + numpy.sign(table[:, 1, 1] - table[:, 0, 1])) / 2
    for step in orders.T:
        first, second = lines + firsts[step], lines + seconds[step]
        expected = 1 / (1 + numpy.exp((ratings[second] - ratings[first]) / ELO))
        change = k * (points[step] - expected)
        ratings[first] += change
        ratings[second] -= change
    return ratings.reshape(len(orders), -1)[:, :count]


def _openskill(count: int, table: Any, orders: Any) -> Any:
    """Means of the skills in units of log-strength: the odds of one against another are exp((μ − μ')/√2β)."""
    import numpy

    means = numpy.zeros((len(orders), count + 1))
    variances = numpy.full((len(orders), count + 1), _SIGMA**2)
    lines = numpy.arange(len(orders))[:, None]
    own = numpy.eye(table.shape[1])
    for step in orders.T:
        players, places = table[step, :, 0], table[step, :, 1]
        there = players >= 0
        mean, variance = means[lines, players], variances[lines, players]
        scale = numpy.sqrt(((variance + _BETA**2) * there).sum(axis=1, keepdims=True))
        scale[scale == 0] = 1.0  # no game
        powers = numpy.exp(mean / scale) * there
        no_better = (places[:, None, :] >= places[:, :, None]) & there[:, None, :]  # [order, q, s]
        totals = (powers[:, None, :] * no_better).sum(axis=2)
        ties = ((places[:, None, :] == places[:, :, None]) & there[:, None, :]).sum(axis=2)
        counted = no_better & there[:, :, None]  # [order, q, i]: q is placed no worse than i
        shares = numpy.where(counted, powers[:, None, :] / numpy.where(totals, totals, 1.0)[:, :, None], 0.0)
        ties = numpy.maximum(ties, 1)[:, :, None]
        gained = ((own - shares) * counted / ties).sum(axis=1)
        spread = (shares * (1 - shares) / ties).sum(axis=1)
        means[lines, players] += numpy.where(there, variance / scale * gained, 0.0)
        shrunk = numpy.maximum(1 - variance**1.5 / scale**3 * spread, _KAPPA)
        variances[lines, players] = numpy.where(there, variance * shrunk, variance)
    return means[:, :count] / (math.sqrt(2) * _BETA)
