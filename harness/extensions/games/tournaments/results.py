"""Results of games: who played, and what each contestant got."""

from __future__ import annotations

import math
import re
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
    action of its player), `illegal` (the player replied without a legal action) and `failed` (it did not reply), and
    perhaps `forfeited: 1`, if one of these has ended the game. As a number of its own it is the share of games that one
    contestant alone has won.
    """

    bounds = (0, 1)
    results_of_contestants = True

    @abstractmethod
    def measure(self, episode: Episode) -> list[list[Any]] | None:
        """Return the seats' contestants, returns and perhaps turns; None if there was no game."""

    def aggregate(self, numbers: Sequence[Any]) -> Statistic:
        """Return the share of games with a single winner, among games of several contestants."""
        games = [game for record in numbers if (game := standing_of(record)) and len(game) > 1]
        alone = [float(list(game.values()).count(max(game.values())) == 1) for game in games]
        n = len(alone)
        return Statistic(
            statistics.fmean(alone) if n else None, statistics.stdev(alone) / math.sqrt(n) if n > 1 else None, n
        )


VERSUS: Final = " vs "
"""What stands between the names of a pairing."""
TURNS: Final = ("substituted", "illegal", "failed")
"""What turns are counted by, besides all `turns`."""
MIN_LEGAL: Final = 0.5
"""The share of its turns in which a contestant must have made a legal move, where a table says nothing else."""


@dataclass(frozen=True, slots=True)
class Game:
    """One game.

    Attributes:
        returns: contestant → its return; of one in several seats the mean of theirs.
        standing: contestant → what says who was ahead: its return, and less than all of these of one that forfeited.
        forfeits: the contestants that forfeited the game, which ended there.
        seats: contestant → its seat, or that of its team, from 0; empty where a spec has no tournament, and seats may
            be anything.
        game: which game it is, of several in a matrix.
        case: the case that was played, such as a deal.
        cluster: which games are one observation.
        turns: contestant → `turns` and `TURNS`, over all of its seats; without those whose record has no counts.
    """

    returns: Mapping[str, float]
    standing: Mapping[str, float]
    case: str
    cluster: Hashable
    turns: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    forfeits: frozenset[str] = frozenset()
    seats: Mapping[str, int] = field(default_factory=dict)
    game: str = ""


@dataclass(frozen=True, slots=True)
class RatedGames:
    """The games of one table, or of one value of its row labels.

    Attributes:
        games: those in which all contestants made enough moves themselves.
        everyone: all contestants, in order of appearance.
        names: contestant → what readers see for it.
        observations: which games are one observation, in words.
        uses_ground_truth: whether players knew the right answer in some of them.
        turns: contestant → `turns` and `TURNS` over all its games, also over those that are left out.
        absent: contestant → its games, of those that made too few of their moves themselves: their results are those
            of what stood in for them.
        min_legal: the share of its turns in which a contestant must have made a legal move.
    """

    games: Sequence[Game]
    everyone: Sequence[str]
    names: Callable[[str], str]
    observations: str
    uses_ground_truth: bool
    turns: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    absent: Mapping[str, int] = field(default_factory=dict)
    min_legal: float = MIN_LEGAL

    @classmethod
    def of(
        cls,
        games: Sequence[Game],
        names: Callable[[str], str],
        observations: str,
        uses_ground_truth: bool,
        min_legal: float = MIN_LEGAL,
    ) -> RatedGames:
        """All games of a part, without those of contestants that made too few of their moves themselves."""
        turns: dict[str, Counter[str]] = {}
        for game in games:
            for name, counts in game.turns.items():
                turns.setdefault(name, Counter()).update(counts)
        idle = {name for name, own in turns.items() if own["turns"] and _too_few(_legal(own), min_legal)}
        absent = {name: sum(name in game.returns for game in games) for name in turns if name in idle}
        played = [game for game in games if idle.isdisjoint(game.returns)]
        everyone = [*dict.fromkeys(name for game in games for name in game.returns)]
        return cls(played, everyone, names, observations, uses_ground_truth, turns, absent, min_legal)

    def contestants(self) -> list[str]:
        """All of them, in order of appearance; the absent ones are the last."""
        return [*(name for name in self.everyone if name not in self.absent), *self.absent]

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
            legal = _legal(self.turns[name])
            moves = (
                f"a legal move in {100 * legal:.1f} % of its turns" if legal else "no legal move in any of its turns"
            )
            least = f"at least {100 * self.min_legal:g} %" if self.min_legal else "some"
            yield (
                f"{self.names(name)} is not rated: it made {moves}, and a rating takes {least} (`min_legal`). Its "
                f"{count} game{'s' * (count != 1)} count in no number here."
            )


def turns_shown(parts: Iterable[RatedGames]) -> list[str]:
    """Those of `TURNS` that tables of these parts have columns for: all of them where some turn was one of them."""
    some = any(part.share(name, what) for part in parts for name in part.turns for what in TURNS)
    return [*TURNS] if some else []


def _legal(turns: Mapping[str, int]) -> float:
    """The share of turns with a legal move of the contestant's own."""
    return 1 - (turns["illegal"] + turns["failed"]) / turns["turns"]


def _too_few(legal: float, least: float) -> bool:
    """Without any it is too few, whatever a table asks for."""
    return legal <= 0 or legal < least


def standing_of(record: Any) -> dict[str, float] | None:
    """Contestant → a number that says who was ahead: its return; of one that forfeited less than all returns.

    None for what is not a record of a game.
    """
    returns = returns_of(record)
    if returns is None:
        return None
    last, forfeits = min(returns.values()) - 1, forfeits_of(record)
    return {name: last if name in forfeits else number for name, number in returns.items()}


def forfeits_of(record: Any) -> frozenset[str]:
    """The contestants of a record of a game that forfeited it in one of their seats."""
    return frozenset(
        seat[0] for seat in record if len(seat) > 2 and isinstance(seat[2], dict) and seat[2].get("forfeited") == 1
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
            standing = standing_of(record.value) or returns
            turns, forfeits = turns_of(record.value), forfeits_of(record.value)
            game = (returns, standing, score.case, own, turns, forfeits, _seats(score, returns), game_of(score))
            games.append(Game(*game))
    return games


def _seats(score: EpisodeScore, contestants: Iterable[str]) -> dict[str, int]:
    """Contestant → its seat. Of two, a tournament says who was in the first, as of teams whose seats are drawn."""
    if "pairing" not in score.labels:
        return {}
    order = [*contestants]
    if len(order) == 2 and order[1] == score.labels.get("first"):
        order.reverse()
    return {name: seat for seat, name in enumerate(order)}


def game_of(score: EpisodeScore) -> str:
    """The condition of an episode without what a tournament adds to it: who plays, and in which round. Other specs may
    have a matrix of who plays: their games are one."""
    if "pairing" not in score.labels:
        return ""
    return re.split(r"(?:^|,)(?:round|pairing)=", score.condition, maxsplit=1)[0]
