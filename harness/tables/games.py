"""Results of games: who played, and what each contestant got."""

from __future__ import annotations

import math
import statistics
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.api import CorpusMetric, Episode, Statistic

from .scores import EpisodeScore, cluster_of


class ResultsMetric(CorpusMetric):
    """Results of games, from which tables of kind `rating`, `cross_play` and `self_play` are made.

    An episode's record is a list of [contestant, return], one for each seat. As a number of its own it is the share of
    games that one contestant alone has won.
    """

    bounds = (0, 1)

    @abstractmethod
    def measure(self, episode: Episode) -> list[list[Any]] | None:
        """Return the seats' contestants and returns; None if there was no game."""

    def aggregate(self, numbers: Sequence[Any]) -> Statistic:
        """Return the share of games with one winner, among those of several contestants."""
        games = [game for record in numbers if (game := returns_of(record)) and len(game) > 1]
        alone = [float(list(game.values()).count(max(game.values())) == 1) for game in games]
        n = len(alone)
        return Statistic(
            statistics.fmean(alone) if n else None, statistics.stdev(alone) / math.sqrt(n) if n > 1 else None, n
        )


@dataclass(frozen=True, slots=True)
class Game:
    """One game.

    Attributes:
        returns: contestant → its return; of one in several seats the mean of theirs.
        case: the case that was played, such as a deal.
        cluster: which games are one observation.
    """

    returns: Mapping[str, float]
    case: str
    cluster: Hashable


@dataclass(frozen=True, slots=True)
class RatedGames:
    """The games of one table, or of one value of its row labels.

    Attributes:
        games: all of them.
        names: contestant → what readers see for it.
        observations: which games are one observation, in words.
        uses_ground_truth: whether players knew the right answer in some of them.
    """

    games: Sequence[Game]
    names: Callable[[str], str]
    observations: str
    uses_ground_truth: bool

    def contestants(self, least: int = 1) -> list[str]:
        """Those of games of at least so many contestants, in order of appearance."""
        return [*dict.fromkeys(name for game in self.games if len(game.returns) >= least for name in game.returns)]


def returns_of(record: Any) -> dict[str, float] | None:
    """Contestant → the mean return of its seats; None for what is no record of a game."""
    if not isinstance(record, list) or not record:
        return None
    seats: dict[str, list[float]] = {}
    for seat in record:
        if not isinstance(seat, list) or len(seat) != 2 or not isinstance(seat[0], str):
            return None
        contestant, number = seat
        if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
            return None
        seats.setdefault(contestant, []).append(float(number))
    return {contestant: statistics.fmean(numbers) for contestant, numbers in seats.items()}


def games_of(scores: Iterable[EpisodeScore], metric: str, cluster: Sequence[str] = ()) -> list[Game]:
    """The games that episodes have under a metric, in order.

    Without `cluster` the games of a case between the same contestants are one observation: the same deal, with seats
    exchanged.
    """
    games = []
    for score in scores:
        record = score.record(metric)
        returns = returns_of(record.value) if record else None
        if returns is not None:
            own: Hashable = cluster_of(score, cluster) if cluster else (score.case, frozenset(returns))
            games.append(Game(returns, score.case, own))
    return games
