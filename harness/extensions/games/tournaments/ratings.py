"""A table of ratings: how strong each contestant is, and which rank it may have."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Final, Literal

from harness.api import Range
from harness.tables import TableSpec, stats
from harness.tables.entry import Name
from harness.tables.table import Cell, Column, NumberForm

from .cycles import alpha_rank, cycle, shares_of_points
from .game_tables import ContestantRows, Games, GamesEntry, turn_columns
from .ratings_choices import Setting
from .ratings_model import ELO, MAX_SIDES, Strengths, fit, islands
from .ratings_sequential import Update, played
from .results import Game, RatedGames

Model = Literal["bradley_terry", "plackett_luce", "elo", "openskill"]
COLUMNS: Final[Mapping[str, tuple[str, NumberForm]]] = {
    "rating": ("rating", "interval"),
    "rank": ("rank", "rank"),
    "games": ("games", "count"),
    "wins": ("wins", "count"),
    "draws": ("draws", "count"),
    "losses": ("losses", "count"),
    "mean_return": ("mean return", "quantity"),
}
"""Statistic → its column's title and form. `TURNS` follow where some turn was not a contestant's own."""
_NAMES: Final = {
    "bradley_terry": "Bradley–Terry, by maximum likelihood",
    "plackett_luce": "Plackett–Luce, by maximum likelihood",
    "elo": "Elo with K = {k:g}, the mean over random orders of the games",
    "openskill": "openskill (Weng and Lin, 2011), the mean over random orders of the games",
}
_IN_WORDS: Final = 4
_NO_ERROR: Final = 1e-9
"""Less than this is an error of zero: all observations say the same."""
_TWO: Final = ("bradley_terry", "elo")
"""The models of games of two contestants."""


class RatingEntry(GamesEntry, total=False):
    """The keys of a table of ratings."""

    model: Annotated[
        Model,
        "how ratings come from games; without it bradley_terry, or plackett_luce where some game has more than two "
        "contestants",
    ]
    anchor: Annotated[
        float | Name,
        "a number: the mean of all ratings, 1500 unless it says otherwise; or a contestant: its rating is 0, and "
        "others are differences from it",
    ]
    seats: Annotated[
        bool,
        "whether ratings have a term for what a seat is worth, and where deals repeat for the luck of the deal (true)",
    ]
    k_factor: Annotated[float, Range(gt=0, le=1_000), "with model: elo, how much a game changes; 16 by default"]


@dataclass(frozen=True, slots=True)
class RatingTable(Games):
    """How strong each contestant is. Without a `model` the games choose it."""

    name: ClassVar[str] = "rating"
    entry: ClassVar[Any] = RatingEntry

    model: Model | None = None
    anchor: float | str = 1500.0
    k_factor: float | None = None
    seats: bool = True

    @property
    def k(self) -> float:
        """How much a game changes, for Elo."""
        return 16.0 if self.k_factor is None else self.k_factor

    def problems(self, table: TableSpec) -> list[str]:
        """Also a K factor of another model."""
        mistakes = ["k_factor: it belongs to model: elo"] * (self.k_factor is not None and self.model != "elo")
        return [*Games.problems(self, table), *mistakes]

    def check_plan(self, table: TableSpec, plan: Any) -> list[tuple[str, str | None]]:
        """Also an anchor that plays in none of them."""
        from .game_checks import crowded, unknown_anchor

        problems = [unknown_anchor(self.anchor, table, plan)] if isinstance(self.anchor, str) else []
        if self.model in _TWO and (found := crowded(table, plan)) is not None:
            message = f"{self.model} rates games of two contestants; condition {found[0]} has {found[1]}"
            problems.append((message, "Say `model: plackett_luce` or `openskill`, which take games of several."))
            return [problem for problem in problems if problem]
        return [*(problem for problem in problems if problem), *Games.check_plan(self, table, plan)]

    def fill(
        self,
        parts: Sequence[RatedGames],
        turns: Sequence[str],
        first: Mapping[str, int],
        title: Callable[[str], str],
        metric: str,
    ) -> tuple[Sequence[Column], Sequence[ContestantRows]]:
        """Contestants by their ratings."""
        return columns(turns), [rated(self, part, turns) for part in parts]


def columns(turns: Sequence[str]) -> list[Column]:
    """The table's columns, with those of what turns are counted by."""
    own = [Column({"statistic": name}, (title,), form=form) for name, (title, form) in COLUMNS.items()]
    return [*own, *turn_columns(turns)]


def rated(how: RatingTable, part: RatedGames, turns: Sequence[str] = ()) -> ContestantRows:
    """Rate the contestants of games by `how.model`.

    Bradley–Terry and Elo take games of two contestants, the others of several (Plackett–Luce of up to `MAX_SIDES`).
    Where `how` names no model it is Bradley–Terry, or Plackett–Luce if some game has more than two. A game of a
    contestant with itself says nothing about its strength and is left out.
    """
    if how.model is None:
        crowded = any(len(game.returns) > 2 for game in part.games)
        how = replace(how, model="plackett_luce" if crowded else "bradley_terry")
    assert how.model is not None
    most = {"bradley_terry": 2, "elo": 2, "plackett_luce": MAX_SIDES}.get(how.model, math.inf)
    used = [game for game in part.games if 1 < len(game.returns) <= most]
    names = sorted({name for game in used for name in game.returns})  # not as they come: Elo draws orders of games
    found = _strengths(how, names, used) if names else None
    ratings = _ratings(how, names, found) if found else {}
    ranks = _ranks(names, found) if found else {}
    rows = []
    everyone = [*names, *(name for name in part.contestants() if name not in names)]
    for name in sorted(everyone, key=lambda name: -(ratings[name].value or 0) if name in ratings else math.inf):
        own = [game for game in used if name in game.returns]
        cells = {"rating": ratings.get(name, Cell()), "rank": ranks.get(name, Cell()), **_counts(name, own)}
        shown = [cells[column] for column in COLUMNS] + [Cell(part.share(name, what)) for what in turns]
        rows.append((name, [_of(cell, len(own), part) for cell in shown]))
    return ContestantRows(rows, [*_notes(how, part, names, used, found)])


def _of(cell: Cell, n: int, part: RatedGames) -> Cell:
    return Cell(cell.value, n=n, low=cell.low, high=cell.high, uses_ground_truth=part.uses_ground_truth)


@dataclass(slots=True)
class _Played:
    """Games as those of numbered contestants, with the observation that each belongs to, and its seats and deal."""

    outcomes: list[list[tuple[int, float]]]
    clusters: list[Hashable]
    settings: list[Setting]


def _outcomes(names: Sequence[str], games: Sequence[Game]) -> _Played:
    """The games of some contestants. Of several games in a matrix each weighs as much as the others.

    A game of several that one has forfeited says that it lost to each of the others, and nothing about these.
    """
    place = {name: i for i, name in enumerate(names)}
    made = _Played([], [], [])
    counts = Counter(game.game for game in games)
    for game in games:
        weight = len(games) / len(counts) / counts[game.game]
        sides = [(place[name], value) for name, value in game.standing.items()]
        lost = [side for side, name in zip(sides, game.standing, strict=True) if name in game.forfeits]
        split = [[one, other] for one in lost for other in sides if other not in lost]
        for outcome in split if lost and len(sides) > 2 else [sides]:
            where = tuple(game.seats.get(names[player], 0) for player, _ in outcome)
            made.outcomes.append(outcome)
            made.clusters.append(game.cluster)
            made.settings.append(Setting(where, len(game.seats), game.game, game.case, weight))
    return made


def _strengths(how: RatingTable, names: Sequence[str], games: Sequence[Game]) -> Strengths | None:
    """None if games do not connect the contestants, or no game has a winner."""
    made = _outcomes(names, games)
    if how.model in ("bradley_terry", "plackett_luce"):
        settings = made.settings if how.seats else [replace(one, count=0) for one in made.settings]
        return fit(len(names), made.outcomes, made.clusters, settings)
    if len(islands(len(names), made.outcomes)) > 1:
        return None
    update: Update = "elo" if how.model == "elo" else "openskill"
    return played(len(names), made.outcomes, made.clusters, update, how.k)


def _counts(name: str, games: Sequence[Game]) -> dict[str, Cell]:
    """A win is the first place alone, a draw the first place shared."""
    first = shared = 0
    for game in games:
        numbers = list(game.standing.values())
        leads = game.standing[name] == max(numbers)
        first += leads
        shared += leads and numbers.count(max(numbers)) > 1
    counts = {"games": len(games), "wins": first - shared, "draws": shared, "losses": len(games) - first}
    mean = stats.mean([game.returns[name] for game in games]).value
    return {**{key: Cell(float(count)) for key, count in counts.items()}, "mean_return": Cell(mean)}


def _ratings(how: RatingTable, names: Sequence[str], found: Strengths) -> dict[str, Cell]:
    """Ratings in Elo points, with 95 % intervals."""
    base = names.index(how.anchor) if isinstance(how.anchor, str) and how.anchor in names else None
    level = how.anchor if isinstance(how.anchor, int | float) else 0.0 if base is not None else RatingTable().anchor
    cells = {}
    for i, name in enumerate(names):
        value = float(found.values[i]) - (float(found.values[base]) if base is not None else 0.0)
        low = high = None
        if i != base and (error := _error(found, i, base)) > _NO_ERROR:
            half = found.quantile * error
            end = found.open_ends.get(i)
            low = None if end == -1 else float(level) + ELO * (value - half)
            high = None if end == 1 else float(level) + ELO * (value + half)
        cells[name] = Cell(float(level) + ELO * value, low=low, high=high)
    return cells


def _error(found: Strengths, one: int, other: int | None = None) -> float:
    """The standard error of a strength, or of a difference."""
    spread = found.covariance
    if spread is None:
        return 0.0
    square = float(spread[one, one])
    if other is not None:
        square += float(spread[other, other]) - 2 * float(spread[one, other])
    return math.sqrt(max(square, 0.0))


def _ranks(names: Sequence[str], found: Strengths) -> dict[str, Cell]:
    """Each contestant's rank, and the ranks that it may have, given which pairs differ significantly."""
    from scipy.special import stdtr

    pairs, scores = [*itertools.combinations(range(len(names)), 2)], []
    for one, other in pairs:
        error = _error(found, one, other)
        scores.append(abs(float(found.values[one] - found.values[other])) / error if error > _NO_ERROR else 0.0)
    pvalues = stats.holm([float(2 * stdtr(max(found.clusters - 1, 1), -score)) for score in scores])
    behind = [0] * len(names)
    ahead = [0] * len(names)
    for (one, other), p in zip(pairs, pvalues, strict=True):
        if p < 0.05:
            better, worse = (one, other) if found.values[one] > found.values[other] else (other, one)
            behind[worse] += 1
            ahead[better] += 1
    cells = {}
    for i, name in enumerate(names):
        rank = 1 + sum(float(value) > float(found.values[i]) + 1e-9 for value in found.values)
        cells[name] = Cell(float(rank), low=1.0 + behind[i], high=float(len(names) - ahead[i]))
    return cells


# ------------------------------------------------------------------------------------------- notes


def _notes(
    how: RatingTable, part: RatedGames, names: Sequence[str], used: Sequence[Game], found: Strengths | None
) -> Iterable[str]:
    alone = sum(len(game.returns) == 1 for game in part.games)
    wide = len(part.games) - alone - len(used)
    if alone:
        yield f"{alone} of {len(part.games)} games are of a contestant with itself and rate nothing."
    if wide:
        limit = "two" if how.model in ("bradley_terry", "elo") else str(MAX_SIDES)
        hint = "plackett_luce and openskill take them" if limit == "two" else "openskill takes them"
        yield f"{wide} of {len(part.games)} games have more than {limit} contestants and are left out; {hint}."
    if found is None:
        yield from _why_none(part, names, used)
        return
    yield f"Rating: {_NAMES[how.model or ''].format(k=how.k)}{_ties(how, found)}; {_anchored(how, part, names)}"
    if how.model == "elo":
        yield (
            "Everyone begins with the same Elo rating, and a game moves it by K at most: after few games differences "
            "are too small, and intervals do not allow for that. Those of `model: bradley_terry` are not."
        )
    yield from _seat_notes(found, used)
    if found.prior:
        yield _prior(part, names, found)
    if found.covariance is None:
        yield f"{part.observations} ({found.clusters} of them): too few for intervals of {len(names)} ratings."
    else:
        sampled = "" if how.model in ("bradley_terry", "plackett_luce") else ", from samples of games in random orders"
        yield f"In brackets: 95 % intervals{sampled}. {part.observations} ({found.clusters} of them)."
        alike = [part.names(name) for i, name in enumerate(names) if _error(found, i) <= _NO_ERROR]
        if alike:
            yield f"No interval for {_listed(alike)}: all observations say the same."
    if len(names) > 1 and found.covariance is not None:
        count = math.comb(len(names), 2)
        pairs = "one pair" if count == 1 else f"all {count} pairs"
        yield (
            "Rank: the ranks that a contestant may have, given which differ significantly (p < 0.05 after Holm's "
            f"correction for {pairs})."
        )
    yield from _circle(part, names, used)
    if any(len(game.returns) > 2 for game in used):
        yield "Wins: first places; draws: first places that are shared."


def _circle(part: RatedGames, names: Sequence[str], games: Sequence[Game]) -> Iterable[str]:
    """Wins that go round, with α-rank."""
    found = shares_of_points((game.standing for game in games), names)
    if found is None or (circle := cycle(*found)) is None:
        return
    shares, _ = found
    three = ", ".join(part.names(names[i]) for i in circle)
    ranked = sorted(zip(alpha_rank(shares), names, strict=True), reverse=True)
    listed = [f"{part.names(name)} {100 * share:.0f} %" for share, name in ranked if share >= 0.005]
    yield (
        f"Wins go round in a circle ({three}: each won more than half against the next), which a rating cannot say. "
        f"α-rank, the share of time that each is on top: {', '.join(listed)}."
    )


def _seat_notes(found: Strengths, games: Sequence[Game]) -> Iterable[str]:
    """What seats and deals were worth, and which games were pooled."""
    for game, seats in found.seats.items():
        where = f" of {game}" if game and len(found.seats) > 1 else ""
        halves = [found.quantile * error for error in found.seat_errors.get(game, ())]
        ends = [f" [{ELO * (x - half):+.0f}, {ELO * (x + half):+.0f}]" for x, half in zip(seats, halves, strict=False)]
        worth = ", ".join(f"{ELO * x:+.0f}{end}" for x, end in zip(seats, ends or [""] * len(seats), strict=True))
        known = " (95 % intervals)" if ends else " (too few observations for intervals)"
        yield f"Seats{where} are worth {worth} points, in their order{known}: ratings are those of equal seats."
    if found.luck is not None:
        yield (
            f"The luck of the deal makes a difference between two seats of ±{ELO * found.luck:.0f} points (a standard "
            "deviation): ratings are those of a fair deal."
        )
    if found.confounded:
        yield (
            "No term for seats: the games cannot tell what a seat is worth from who sat in it (`rotate_seats: true` "
            "lets all contestants play in all seats)."
        )
    if (count := len({game.game for game in games})) > 1:
        yield f"Games of {count} conditions weigh as much as each other, however many each has."


def _ties(how: RatingTable, found: Strengths) -> str:
    if not found.ties:
        return ""
    return ", with draws as Davidson (1970)" if how.model == "bradley_terry" else ", with ties as Firth et al. (2019)"


def _anchored(how: RatingTable, part: RatedGames, names: Sequence[str]) -> str:
    scale = "" if how.model == "elo" else "400 points more are odds of 10 to 1; "
    if isinstance(how.anchor, int | float):
        return f"{scale}their mean is {how.anchor:g}."
    if how.anchor in names:
        return f"{scale}{part.names(how.anchor)} is 0."
    mean = RatingTable().anchor
    return f"{scale}their mean is {mean:g}, since {part.names(how.anchor)}, the anchor, has no game."


def _prior(part: RatedGames, names: Sequence[str], found: Strengths) -> str:
    best, worst = ([part.names(names[i]) for i, end in found.open_ends.items() if end == sign] for sign in (1, -1))
    why = [f"{_listed(best)} did at least as well as all others in every game"] if best else []
    why += [f"{_listed(worst)} did no better than any other"] if worst else []
    reason = " and ".join(why) or "there are too few games of some outcome"
    ends = " An interval has no end on that side." if why else ""
    return (
        f"Maximum likelihood has no finite answer ({reason}): every rating has a prior that is worth one game, half of "
        f"it won, against an opponent of mean strength.{ends}"
    )


def _why_none(part: RatedGames, names: Sequence[str], used: Sequence[Game]) -> Iterable[str]:
    if not used:
        yield "There are no games between contestants, so there are no ratings."
        return
    groups = islands(len(names), _outcomes(names, used).outcomes)
    if len(groups) > 1:
        listed = "; ".join(_listed([part.names(names[i]) for i in group]) for group in groups[:_IN_WORDS])
        more = f"; and {len(groups) - _IN_WORDS} more" if len(groups) > _IN_WORDS else ""
        yield f"No games connect these groups, so there are no ratings that could be compared: {listed}{more}."
    else:
        yield "No game has a winner, so there are no ratings."


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_IN_WORDS])
    return shown if len(names) <= _IN_WORDS else f"{shown} and {len(names) - _IN_WORDS} more"
