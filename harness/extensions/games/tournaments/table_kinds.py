"""The kinds of tables of games: `kind: rating`, `kind: cross_play` and `kind: self_play`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal, TypedDict

from harness.api import Metric, Range
from harness.tables import EpisodeScore, Table, TableKind, TableSpec
from harness.tables.entry import Name
from harness.tables.spec import beside

from .results import MIN_LEGAL

Model = Literal["bradley_terry", "plackett_luce", "elo", "openskill"]
CONTESTANT: Final = "contestant"
OPPONENT: Final = "opponent"
_BESIDE: Final = {
    "columns": "its columns are statistics; name labels in rows",
    "overall": "its columns are statistics, which have no mean",
    "figure": "it is shown as a table; cross_play can be drawn as heat",
    "hide_empty": "its columns are statistics, the same for every row",
    "published": "published figures are not results of these games",
    "uncertainty": "it has 95 % intervals",
}
_TWO: Final = ("bradley_terry", "elo")
"""The models of games of two contestants."""


class GamesEntry(TypedDict, total=False):
    """The key that all tables of games have."""

    of: Annotated[Name, "a metric: the results of games, such as games/results"]
    min_legal: Annotated[
        float,
        Range(ge=0, le=1),
        "the share of its turns in which a contestant must have made a legal move to be rated (0.5)",
    ]


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


class CrossPlayEntry(GamesEntry, total=False):
    """The keys of a table of each contestant against each."""

    value: Annotated[Literal["points", "return"], "points (the row's share of them, the default) or return"]


@dataclass(frozen=True, slots=True)
class Games(TableKind):
    """A table of games."""

    name: ClassVar[str]
    entry: ClassVar[Any] = GamesEntry
    needs: ClassVar[tuple[str, ...]] = ("of",)
    names_metrics: ClassVar[str] = "of"
    shares_cluster: ClassVar[bool] = False
    reserved: ClassVar[frozenset[str]] = frozenset({"statistic", CONTESTANT, OPPONENT})

    min_legal: float = MIN_LEGAL

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Games:
        """Read the keys that tables of games add."""
        return cls(**{key: entry[key] for key in cls.__dataclass_fields__ if key in entry})

    def problems(self, table: TableSpec) -> list[str]:
        """What makes no sense in a table of games."""
        return beside(table, "kind", _BESIDE)

    def check(self, table: TableSpec, labels: Mapping[str, Sequence[str]], metrics: Iterable[str]) -> list[str]:
        """Metrics that keep no results of games."""
        known = metrics if isinstance(metrics, Mapping) else {}
        bare = [name for name in table.cells if name in known and not known[name].results_of_contestants]
        return [f"of: {name} keeps no results of games, as games/results does" for name in bare]

    def check_plan(self, table: TableSpec, plan: Any) -> list[tuple[str, str | None]]:
        """Games that cannot fill it: those of one contestant, or of more than its model takes."""
        from .game_checks import sides_of

        counts = {name: len(sides) for name, sides in sides_of(table, plan).items()}
        if counts and max(counts.values()) < 2:
            message = f"kind: {self.name}: no game has two contestants: a contestant is a group of agents"
            return [(message, "Put the agents of a game into several groups.")]
        return []

    def build(self, table: TableSpec, scores: Sequence[EpisodeScore], metrics: Mapping[str, Metric]) -> Table:
        """As `game_tables.game_table`."""
        from .game_tables import game_table

        return game_table(table, self, metrics, scores)


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


@dataclass(frozen=True, slots=True)
class CrossPlayTable(Games):
    """Each contestant against each."""

    name: ClassVar[str] = "cross_play"
    entry: ClassVar[Any] = CrossPlayEntry

    value: Literal["points", "return"] = "points"

    @classmethod
    def complete(cls, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        """Shares of points are whole percents."""
        shares = entry.get("value", "points") == "points"
        return {"digits": 0, "unit": "percent", **entry} if shares else entry

    def problems(self, table: TableSpec) -> list[str]:
        """It can be drawn, and can show intervals."""
        own = {key: why for key, why in _BESIDE.items() if key not in ("figure", "uncertainty")}
        mistakes = beside(table, "kind", own)
        mistakes += ["figure: cross_play is drawn as heat"] * (table.figure not in (None, "heat"))
        return mistakes + ["uncertainty: cross_play shows interval"] * (table.uncertainty not in (None, "interval"))


@dataclass(frozen=True, slots=True)
class SelfPlayTable(Games):
    """Each contestant with itself and with others."""

    name: ClassVar[str] = "self_play"

    def check_plan(self, table: TableSpec, plan: Any) -> list[tuple[str, str | None]]:
        """Games of one contestant are what it is about."""
        return []
