"""Strengths of contestants by maximum likelihood: the models of Bradley and Terry, Davidson, and Plackett and Luce."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from harness.tables.stats import t_quantile

from .ratings_choices import Choices, Outcome, Setting
from .ratings_deals import with_deals

ELO: Final = 400 / math.log(10)
"""Elo points of one unit of log-strength: 400 points are odds of 10 to 1."""
MAX_SIDES: Final = 10
"""So many contestants may a game have: ties are sums over subsets of them."""
_NORMAL: Final = 1.959964


@dataclass(frozen=True, slots=True)
class Strengths:
    """What games say about contestants.

    Attributes:
        values: log-strengths, whose mean is 0.
        covariance: their covariance matrix; None with no more clusters than contestants.
        clusters: how many independent observations there are.
        ties: how many contestants share a place → the logarithm of δ; empty without ties.
        open_ends: contestant → +1 or −1 where its strength has no greatest or no least value.
        prior: whether a prior was needed, because the likelihood has no maximum.
        seats: game → log-strength of each of its seats, whose mean is 0; empty without a term for them.
        seat_errors: game → the standard error of each of these; empty where there is no covariance.
        confounded: whether seats were left out since they say the same as the contestants in them.
        luck: the standard deviation, over deals, of the difference between two seats; None without a term for deals.
    """

    values: Any
    covariance: Any | None
    clusters: int
    ties: Mapping[int, float] = field(default_factory=dict)
    open_ends: Mapping[int, int] = field(default_factory=dict)
    prior: bool = False
    seats: Mapping[Hashable, Sequence[float]] = field(default_factory=dict)
    seat_errors: Mapping[Hashable, Sequence[float]] = field(default_factory=dict)
    confounded: bool = False
    luck: float | None = None

    @property
    def quantile(self) -> float:
        """Of Student's t, for 95 % intervals; of the normal distribution where luck is a part of the model, whose
        covariance comes from its information and not from observed clusters."""
        return _NORMAL if self.luck is not None else t_quantile(max(self.clusters - 1, 1))


def islands(count: int, games: Iterable[Outcome]) -> list[list[int]]:
    """The contestants, in groups that games connect."""
    return _components(count, (pair for game in games for pair in itertools.pairwise(player for player, _ in game)))


def fit(
    count: int,
    games: Sequence[Outcome],
    clusters: Sequence[Hashable],
    settings: Sequence[Setting] | None = None,
) -> Strengths | None:
    """Estimate the strengths of contestants 0 … `count` − 1.

    A game is a sequence of choices: who is first, who comes next among the others, and so on (Luce, 1959; Plackett,
    1975). From a set of contestants the k that share the place are chosen with a probability proportional to
    δₖ(π₁ ⋯ πₖ)^(1/k) for strengths π, with δ₁ = 1 (Firth, Kosmidis and Turner, 2019). For games of two this is the
    model of Davidson (1970) with ν = δ₂, and without ties that of Bradley and Terry (1952).

    With `settings` a contestant's log-strength is that of its own and of its seat (as the advantage of the home team in
    Davidson and Beaver, 1977), and where deals repeat each deal adds a normal effect to its seats, which is integrated
    out (`ratings_deals`). Seats that cannot be told from the contestants in them are left out.

    The covariance is cluster-robust (Liang and Zeger, 1986), times G/(G − 1) for G clusters: what the bootstrap over
    clusters comes to in many games, without its errors in few (`benchmarks/ratings.py`).

    Where the likelihood has no maximum (Ford, 1957: someone lost to no one, say), each parameter has a prior of one
    game, half of it won, against an opponent of mean strength (as in Turner et al., 2020), and the covariance is the
    inverse information. Among those whose strength has both ends it is enlarged by the design effect of clusters, if
    that is more than 1: a game that is played again says less than another one.

    Returns:
        None if games do not connect all contestants, and where no game has a winner.
    """
    if count < 2 or len(islands(count, games)) > 1:
        return None
    import numpy

    choices = Choices(count, games, clusters, settings)
    if not choices.decided:
        return None
    confounded = bool(choices.seats) and choices.is_confounded()
    if confounded:
        choices = Choices(count, games, clusters, [replace(one, count=0) for one in settings or ()])

    found = choices.solved(0.0)
    prior = found is None
    estimates, information = found or choices.solved(0.5) or (numpy.zeros(choices.size), None)
    if information is None:  # no likelihood with this prior is without a maximum
        return None
    center = numpy.eye(choices.size)
    for own in (list(range(count)), *choices.seats.values()):
        center[numpy.ix_(own, own)] -= 1 / len(own)
    spread = center @ numpy.linalg.inv(information + choices.level) @ center.T
    ends = _open_ends(count, games) if prior else {}
    covariance = robust = None
    if choices.clusters > count:
        scores = choices.scores(estimates)
        meat = scores.T @ scores * (choices.clusters / (choices.clusters - 1))
        covariance = robust = spread @ meat @ spread
    if prior:
        covariance = spread
        if robust is not None and choices.clusters < len(games):
            closed = numpy.array([float(i not in ends) for i in range(count)])
            within = numpy.diag(closed) - numpy.outer(closed, closed) / max(closed.sum(), 1.0)
            simple, robust = (within @ matrix[:count, :count] @ within for matrix in (covariance, robust))
            growth = max(numpy.trace(robust) / max(numpy.trace(simple), 1e-12) - 1, 0.0)
            covariance = (1 + growth) * covariance
            covariance[:count, :count] = spread[:count, :count] + growth * simple
    luck = None
    if choices.seats and not prior and (lucky := with_deals(choices, estimates)) is not None:
        estimates, luck = lucky.estimates, lucky.luck
        covariance = None if lucky.covariance is None else center @ lucky.covariance @ center
    values = estimates[:count] - estimates[:count].mean()
    ties = {size: float(estimates[choices.first_tie + i]) for i, size in enumerate(choices.sizes[1:])}
    seats = {game: list(estimates[own] - estimates[own].mean()) for game, own in choices.seats.items()}
    errors = {}
    if covariance is not None:
        deviations = numpy.sqrt(numpy.maximum(numpy.diag(covariance), 0.0))
        errors = {game: list(deviations[own]) for game, own in choices.seats.items()}
        covariance = covariance[:count, :count]
    return Strengths(values, covariance, choices.clusters, ties, ends, prior, seats, errors, confounded, luck)


def _components(count: int, pairs: Iterable[tuple[int, int]], *, strong: bool = False) -> list[list[int]]:
    import networkx

    graph: Any = networkx.DiGraph() if strong else networkx.Graph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(pairs)
    parts = networkx.strongly_connected_components(graph) if strong else networkx.connected_components(graph)
    return sorted(map(sorted, parts))


def _open_ends(count: int, games: Iterable[Outcome]) -> dict[int, int]:
    """+1 for those who did better than all others in every game, −1 for worse; also groups of up to half of them."""
    above = {
        (low, high) for game in games for (low, less), (high, more) in itertools.permutations(game, 2) if less <= more
    }
    groups = _components(count, above, strong=True)
    ends: dict[int, int] = {}
    for group in (group for group in groups if len(group) <= count / 2):
        up = any(low in group and high not in group for low, high in above)
        down = any(high in group and low not in group for low, high in above)
        ends |= dict.fromkeys(group, 1 if not up else -1) if up != down else {}
    return ends
