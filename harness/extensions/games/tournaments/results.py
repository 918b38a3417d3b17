"""Results of games: who played, and what each contestant got."""

from __future__ import annotations

import math
import statistics
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from harness.api import CorpusMetric, Episode, Statistic
from harness.tables.scores import EpisodeScore, cluster_of

RESULTS: Final = "games/results"
"""The metric that says who won a game."""


class ResultsMetric(CorpusMetric):
    """Results of games, from which tables of kind `rating`, `cross_play` and `self_play` are made.

    An episode's record is a list of [contestant, return] or [contestant, return, turns], one for each seat. `turns` is
    a mapping of counts: `turns` in which the seat was to act, and how many of these were `substituted` (the game got no
    action of its player), `illegal` (the player replied without a legal action) and `failed` (it did not reply). As a
    number of its own it is the share of games that one contestant alone has won.
    """

    bounds = (0, 1)
    results_of_contestants = True

    @abstractmethod
    def measure(self, episode: Episode) -> list[list[Any]] | None:
        """Return the seats' contestants, returns and perhaps turns; None if there was no game."""

    def aggregate(self, numbers: Sequence[Any]) -> Statistic:
        """Return the share of games with a single winner, among games of several contestants."""
        games = [game for record in numbers if (game := returns_of(record)) and len(game) > 1]
        alone = [float(list(game.values()).count(max(game.values())) == 1) for game in games]
        n = len(alone)
        return Statistic(
            statistics.fmean(alone) if n else None, statistics.stdev(alone) / math.sqrt(n) if n > 1 else None, n
        )


TURNS: Final = ("substituted", "illegal", "failed")
"""What turns are counted by, besides all `turns`."""


@dataclass(frozen=True, slots=True)
class Game:
    """One game.

    Attributes:
        returns: contestant → its return; of one in several seats the mean of theirs.
        case: the case that was played, such as a deal.
        cluster: which games are one observation.
        turns: contestant → `turns` and `TURNS`, over all of its seats; without those whose record has no counts.
    """

    returns: Mapping[str, float]
    case: str
    cluster: Hashable
    turns: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RatedGames:
    """The games of one table, or of one value of its row labels.

    Attributes:
        games: those in which all contestants played.
        names: contestant → what readers see for it.
        observations: which games are one observation, in words.
        uses_ground_truth: whether players knew the right answer in some of them.
        turns: contestant → `turns` and `TURNS` over all its games, also over those that are left out.
        absent: contestant → its games, of those that had turns and no legal action in any: their results are those of
            what stood in for them.
        left_out: how many games had one of these.
    """

    games: Sequence[Game]
    names: Callable[[str], str]
    observations: str
    uses_ground_truth: bool
    turns: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    absent: Mapping[str, int] = field(default_factory=dict)
    left_out: int = 0

    @classmethod
    def of(
        cls, games: Sequence[Game], names: Callable[[str], str], observations: str, uses_ground_truth: bool
    ) -> RatedGames:
        """All games of a part, without those of contestants that never played."""
        turns: dict[str, Counter[str]] = {}
        for game in games:
            for name, counts in game.turns.items():
                turns.setdefault(name, Counter()).update(counts)
        idle = {name for name, own in turns.items() if 0 < own["turns"] <= own["illegal"] + own["failed"]}
        absent = {name: sum(name in game.returns for game in games) for name in turns if name in idle}
        played = [game for game in games if idle.isdisjoint(game.returns)]
        return cls(played, names, observations, uses_ground_truth, turns, absent, len(games) - len(played))

    def contestants(self) -> list[str]:
        """All of them, in order of appearance; those that never played are the last."""
        return [*dict.fromkeys(name for game in self.games for name in game.returns), *self.absent]

    def share(self, name: str, what: str) -> float | None:
        """The share of a contestant's turns that were `what`; None if there is no count."""
        own = self.turns.get(name, {})
        return own[what] / own["turns"] if own.get("turns") else None

    def turn_notes(self) -> Iterable[str]:
        """Whose turns were not its own, and whose games count for nothing."""
        lines = []
        for name in self.turns:
            parts = [(what, share) for what in TURNS if (share := self.share(name, what))]
            if parts:
                lines.append(f"{self.names(name)}: {', '.join(f'{100 * x:.1f} % {what}' for what, x in parts)}")
        if lines:
            yield (
                "Turns that were not a contestant's own: illegal (a reply without a legal action), failed (no reply), "
                "substituted (the game got another action in place of its own, or it lost by that). "
                f"{'; '.join(lines)}."
            )
        for name, count in self.absent.items():
            yield (
                f"{self.names(name)} had no legal action in any of its turns. What stood in for it played its {count} "
                f"game{'s' * (count != 1)}, which count in no number here."
            )


def returns_of(record: Any) -> dict[str, float] | None:
    """Contestant → the mean return of its seats; None for what is not a record of a game."""
    if not isinstance(record, list) or not record:
        return None
    seats: dict[str, list[float]] = {}
    for seat in record:
        if not isinstance(seat, list) or len(seat) not in (2, 3) or not isinstance(seat[0], str):
            return None
        contestant, number = seat[:2]
        if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
            return None
        seats.setdefault(contestant, []).append(float(number))
    return {contestant: statistics.fmean(numbers) for contestant, numbers in seats.items()}


def turns_of(record: Any) -> dict[str, dict[str, int]]:
    """Contestant → `turns` and `TURNS`, over all of its seats; without those of which a seat has no counts."""
    found: dict[str, dict[str, int]] = {}
    without = set()
    for contestant, _, *counts in record:
        own = counts[0] if counts else None
        fields = ("turns", *TURNS)
        if not isinstance(own, dict) or not all(type(own.get(key)) is int and own[key] >= 0 for key in fields):
            without.add(contestant)
            continue
        before = found.get(contestant, dict.fromkeys(fields, 0))
        found[contestant] = {key: before[key] + own[key] for key in fields}
    return {contestant: counts for contestant, counts in found.items() if contestant not in without}


def games_of(scores: Iterable[EpisodeScore], metric: str, cluster: Sequence[str] = ()) -> list[Game]:
    """The games that episodes have under a metric, in order.

    Without `cluster` the games of a case between the same contestants are one observation: the same deal, with seats
    exchanged.
    """
    games = []
    for score in scores:
        record = score.record(metric)
        returns = returns_of(record.value) if record else None
        if record is not None and returns is not None:
            own: Hashable = cluster_of(score, cluster) if cluster else (score.case, frozenset(returns))
            games.append(Game(returns, score.case, own, turns_of(record.value)))
    return games
