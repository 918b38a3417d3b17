"""Who wins against whom, and who plays better with itself than with others."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal

from harness.tables import TableSpec, stats
from harness.tables.spec import beside
from harness.tables.table import Cell, Column, Errors, NumberForm

from .game_tables import BESIDE, OPPONENT, ContestantRows, Games, GamesEntry, turn_columns
from .results import RatedGames

_Numbers = list[tuple[Hashable, float]]
_GAPS: Final[Mapping[str, tuple[str, NumberForm]]] = {
    "self_games": ("games with itself", "count"),
    "self": ("with itself", "quantity"),
    "cross_games": ("games with others", "count"),
    "cross": ("with others", "quantity"),
    "gap": ("gap", "quantity"),
}
"""Statistic → its column's title and form."""


class CrossPlayEntry(GamesEntry, total=False):
    """The keys of a table of each contestant against each."""

    value: Annotated[Literal["points", "return"], "points (the row's share of them, the default) or return"]


@dataclass(frozen=True, slots=True)
class CrossPlayTable(Games):
    """Each contestant against each."""

    name: ClassVar[str] = "cross_play"
    entry: ClassVar[Any] = CrossPlayEntry
    column_label: ClassVar[str] = OPPONENT

    value: Literal["points", "return"] = "points"

    @classmethod
    def complete(cls, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        """Shares of points are whole percents."""
        shares = entry.get("value", "points") == "points"
        return {"digits": 0, "unit": "percent", **entry} if shares else entry

    def problems(self, table: TableSpec) -> list[str]:
        """It can be drawn, and can show intervals."""
        own = {key: why for key, why in BESIDE.items() if key not in ("figure", "uncertainty")}
        mistakes = beside(table, "kind", own)
        mistakes += ["figure: cross_play is drawn as heat"] * (table.figure not in (None, "heat"))
        return mistakes + ["uncertainty: cross_play shows interval"] * (table.uncertainty not in (None, "interval"))

    @property
    def number(self) -> str:
        return "share of points" if self.value == "points" else "mean return"

    def error(self, table: TableSpec) -> Errors:
        return table.uncertainty

    def fill(
        self,
        parts: Sequence[RatedGames],
        turns: Sequence[str],
        first: Mapping[str, int],
        title: Callable[[str], str],
        metric: str,
    ) -> tuple[Sequence[Column], Sequence[ContestantRows]]:
        """Each contestant's numbers against each."""
        against = opponents(self, parts, first)
        return columns(against, title, metric, turns), [matrix(self, part, against, turns) for part in parts]


@dataclass(frozen=True, slots=True)
class SelfPlayTable(Games):
    """Each contestant with itself and with others."""

    name: ClassVar[str] = "self_play"

    def check_plan(self, table: TableSpec, plan: Any) -> list[tuple[str, str | None]]:
        """Games of one contestant are what it is about."""
        return []

    def fill(
        self,
        parts: Sequence[RatedGames],
        turns: Sequence[str],
        first: Mapping[str, int],
        title: Callable[[str], str],
        metric: str,
    ) -> tuple[Sequence[Column], Sequence[ContestantRows]]:
        """Each contestant's numbers with itself and with others."""
        return gap_columns(), [gaps(part) for part in parts]


def _pairs(how: CrossPlayTable, part: RatedGames) -> dict[tuple[str, str], _Numbers]:
    """(contestant, opponent) → the contestant's points, or returns, in every game of both."""
    found: dict[tuple[str, str], _Numbers] = {}
    for game in part.games:
        for one, own in game.returns.items():
            for other in game.returns:
                if one != other and (how.value == "return" or not game.forfeits or {one, other} & game.forfeits):
                    ahead = (game.standing[one] > game.standing[other]) - (game.standing[one] < game.standing[other])
                    number = own if how.value == "return" else (1 + ahead) / 2
                    found.setdefault((one, other), []).append((game.cluster, number))
            if how.value == "return" and len(game.returns) == 1:
                found.setdefault((one, one), []).append((game.cluster, own))
    return found


def _standing(how: CrossPlayTable, parts: Iterable[RatedGames]) -> dict[str, float]:
    """Contestant → the mean of its numbers against all others; the best first."""
    numbers: dict[str, list[float]] = {}
    for part in parts:
        for name in part.contestants():
            numbers.setdefault(name, [])
        for (one, other), values in _pairs(how, part).items():
            numbers[one] += [x for _, x in values if one != other]
    means = {name: statistics.fmean(values) if values else -math.inf for name, values in numbers.items()}
    return dict(sorted(means.items(), key=lambda item: -item[1]))


def opponents(how: CrossPlayTable, parts: Iterable[RatedGames], first: Mapping[str, int]) -> list[str]:
    """The columns' contestants, in the order of the rows."""
    return sorted(_standing(how, parts), key=lambda name: first.get(name, len(first)))


def columns(names: Sequence[str], title: Callable[[str], str], metric: str, turns: Sequence[str]) -> list[Column]:
    """A column an opponent, and one for each share of turns that were not a contestant's own."""
    return [*(Column({OPPONENT: name}, (title(name),), metric) for name in names), *turn_columns(turns)]


def matrix(how: CrossPlayTable, part: RatedGames, opponents: Sequence[str], turns: Sequence[str]) -> ContestantRows:
    """For each contestant what it came to against each opponent: its share of points, or its mean return. Then `turns`,
    shares of its turns."""
    found = _pairs(how, part)
    within = (0.0, 1.0) if how.value == "points" else (-math.inf, math.inf)
    rows = []
    for name in _standing(how, [part]):
        cells = []
        for other in opponents:
            numbers = found.get((name, other), [])
            ends = stats.interval([numbers], within) if numbers else None
            low, high = ends or (None, None)
            value = stats.mean([x for _, x in numbers]).value
            blank = name == other and not numbers
            cells.append(
                Cell(value, n=len(numbers), low=low, high=high, uses_ground_truth=part.uses_ground_truth, blank=blank)
            )
        shares = [part.share(name, what) for what in turns]
        cells += [Cell(share, n=part.turns.get(name, {}).get("turns", 0), blank=share is None) for share in shares]
        rows.append((name, cells))
    return ContestantRows(rows, [*_matrix_notes(how, part, found)])


def _matrix_notes(how: CrossPlayTable, part: RatedGames, found: Mapping[tuple[str, str], _Numbers]) -> Iterable[str]:
    counts = {len(numbers) for (one, other), numbers in found.items() if one != other}
    if not counts:
        yield "There are no games between contestants."
        return
    what = (
        "the row's share of points against the column (a win is 1, a draw ½)"
        if how.value == "points"
        else "the row's mean return in games with the column"
    )
    yield (
        f"A cell is {what}, over {_games(counts)} each{_diagonal(found)}. Rows stand by their mean against all others."
    )
    if how.value == "points" and all(number == 0.5 for numbers in found.values() for _, number in numbers):
        yield "No game has a winner; `value: return` shows what contestants got, and `kind: self_play` compares it."
    if how.value == "points" and (alone := sum(len(game.returns) == 1 for game in part.games)):
        yield f"{alone} of {len(part.games)} games are of a contestant with itself and have no winner."


def _diagonal(found: Mapping[tuple[str, str], _Numbers]) -> str:
    alone = {len(numbers) for (one, other), numbers in found.items() if one == other}
    return f"; on the diagonal with itself alone, over {_games(alone)}" if alone else ""


def _games(counts: Collection[int]) -> str:
    least, most = min(counts), max(counts)
    return f"{least} to {most} games" if least < most else f"{most} game{'s' * (most != 1)}"


# ---------------------------------------------------------------------------- with itself, with others


def gap_columns() -> list[Column]:
    """The columns of a table of gaps."""
    return [Column({"statistic": name}, (title,), form=form) for name, (title, form) in _GAPS.items()]


def gaps(part: RatedGames) -> ContestantRows:
    """For each contestant the mean return of games with itself alone, of games with others, and the difference.

    The interval is Student's t of the difference of two means with errors clustered by case: what both kinds of games
    of a case have in common cancels.
    """
    rows = []
    lacking = []
    for name in part.contestants():
        alone = [(game.case, game.returns[name]) for game in part.games if [*game.returns] == [name]]
        mixed = [
            (game.case, game.returns[name]) for game in part.games if name in game.returns and len(game.returns) > 1
        ]
        means = [stats.mean([x for _, x in numbers]).value for numbers in (alone, mixed)]
        gap = None if means[0] is None or means[1] is None else means[0] - means[1]
        half = _half(alone, mixed) if gap is not None else None
        low, high = (gap - half, gap + half) if gap is not None and half is not None else (None, None)
        informed = part.uses_ground_truth
        values: list[tuple[float | None, int]] = [(len(alone), len(alone)), (means[0], len(alone))]
        values += [(len(mixed), len(mixed)), (means[1], len(mixed))]
        cells = [Cell(value, n=n, uses_ground_truth=informed) for value, n in values]
        cells.append(Cell(gap, n=len(alone) + len(mixed), low=low, high=high, uses_ground_truth=informed))
        rows.append((name, cells))
        lacking += [part.names(name)] if gap is None and name not in part.absent else []
    rows.sort(key=lambda row: -math.inf if row[1][1].value is None else row[1][1].value, reverse=True)
    notes = [
        "Gap: mean return in games that a contestant plays with itself alone, minus that in games with others; in "
        "brackets its 95 % interval (clustered by case)."
    ]
    return ContestantRows(rows, notes + [f"{', '.join(lacking)}: games of one kind are missing."] * bool(lacking))


def _half(alone: Sequence[tuple[str, float]], mixed: Sequence[tuple[str, float]]) -> float | None:
    """Half the length of the interval; None if there are too few cases, or nothing varies."""
    parts: dict[str, float] = {}
    for sign, numbers in ((1, alone), (-1, mixed)):
        mean = statistics.fmean(x for _, x in numbers)
        for case, x in numbers:
            parts[case] = parts.get(case, 0.0) + sign * (x - mean) / len(numbers)
    count = len(parts)
    if count < 2 or min(len({case for case, _ in numbers}) for numbers in (alone, mixed)) < 2:
        return None
    error = math.sqrt(count / (count - 1) * math.fsum(x * x for x in parts.values()))
    return stats.t_quantile(count - 1) * error if error > 1e-12 else None
