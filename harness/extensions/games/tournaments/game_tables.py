"""What tables of games have in common: `kind: rating`, `kind: cross_play` and `kind: self_play`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, TypedDict

from harness.api import Metric, Range
from harness.api.errors import SpecError
from harness.tables import TableKind
from harness.tables.axis import Axis, Key
from harness.tables.entry import Name
from harness.tables.notes import clusters_in_words, of_episodes, without_number
from harness.tables.scores import EpisodeScore
from harness.tables.spec import TableSpec, beside
from harness.tables.table import Cell, Column, Errors, Row, Table

from .results import MIN_LEGAL, RatedGames, ResultsMetric, games_of, turns_shown
from .standings import together

UNDER_TEST = "model"
"""How specs call the model under test."""
CONTESTANT: Final = "contestant"
OPPONENT: Final = "opponent"
BESIDE: Final = {
    "columns": "its columns are statistics; name labels in rows",
    "overall": "its columns are statistics, which have no mean",
    "figure": "it is shown as a table; cross_play can be drawn as heat",
    "hide_empty": "its columns are statistics, the same for every row",
    "published": "published figures are not results of these games",
    "uncertainty": "it has 95 % intervals",
}


class GamesEntry(TypedDict, total=False):
    """The key that all tables of games have."""

    of: Annotated[Name, "a metric: the results of games, such as games/results"]
    min_legal: Annotated[
        float,
        Range(ge=0, le=1),
        "the share of its turns in which a contestant must have made a legal move to be rated (0.5)",
    ]


@dataclass(frozen=True, slots=True)
class ContestantRows:
    """The rows of one part, the best first, and what a reader must know about them."""

    rows: Sequence[tuple[str, Sequence[Cell]]]
    notes: Sequence[str]


@dataclass(frozen=True, slots=True)
class Games(TableKind):
    """A table of games.

    Attributes:
        column_label: what its columns are, in tidy rows.
    """

    name: ClassVar[str]
    entry: ClassVar[Any] = GamesEntry
    needs: ClassVar[tuple[str, ...]] = ("of",)
    names_metrics: ClassVar[str] = "of"
    shares_cluster: ClassVar[bool] = False
    reserved: ClassVar[frozenset[str]] = frozenset({"statistic", CONTESTANT, OPPONENT})

    column_label: ClassVar[str] = "statistic"

    min_legal: float = MIN_LEGAL

    @property
    def number(self) -> str:
        """What the metric is called, unless the entry says it."""
        return "mean return"

    def error(self, table: TableSpec) -> Errors:
        """What its cells show beside their values."""
        return "interval"

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Games:
        """Read the keys that tables of games add."""
        return cls(**{key: entry[key] for key in cls.__dataclass_fields__ if key in entry})

    def problems(self, table: TableSpec) -> list[str]:
        """What makes no sense in a table of games."""
        return beside(table, "kind", BESIDE)

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
        """The table: for each row key and model the contestants, the best first.

        Raises:
            SpecError: for a metric that keeps no results of games.
        """
        metric = table.cells[0]
        if not isinstance(metrics[metric], ResultsMetric):
            raise SpecError(f"table {table.title!r}: of: {metric} keeps no results of games, as games/results does")
        merged: list[str] = []
        several = len({score.model for score in scores}) > 1 and "model" not in table.rows
        if several and all("pairing" in score.labels for score in scores):  # tournaments with the game in common
            several = False
            scores, merged = together(scores, metric)
        axis = Axis(("model", *table.rows) if several else table.rows, table)
        groups: dict[Key, list[EpisodeScore]] = {}
        for score in scores:
            groups.setdefault(axis.key(score.labels), []).append(score)
        played = {key: games_of(groups[key], metric, table.cluster) for key in axis.sorted(groups)}
        title = _title(axis, scores, {name for games in played.values() for game in games for name in game.returns})
        parts = {
            key: RatedGames.of(
                games,
                title,
                _one(table),
                any(score.uses_ground_truth for score in groups[key]),
                self.min_legal,
            )
            for key, games in played.items()
        }
        first = {name: i for i, name in enumerate(table.order.get(CONTESTANT, ()))}
        columns, made = self.fill([*parts.values()], turns_shown(parts.values()), first, title, metric)
        rows: list[Row] = []
        notes: list[str] = []
        for (key, part), own in zip(parts.items(), made, strict=True):
            where = f"{', '.join(map(axis.title, key))}: " if len(parts) > 1 else ""
            ordered = sorted(own.rows, key=lambda row: first.get(row[0], len(first)))
            rows += [_row(axis, key, name, title(name), cells, metric) for name, cells in ordered]
            notes += [where + note for note in (*own.notes, *part.turn_notes())]
        return Table(
            title=table.title,
            row_labels=(*axis.labels, CONTESTANT),
            column_labels=(self.column_label,),
            columns=tuple(columns),
            rows=tuple(rows),
            row_names=tuple(map(axis.title, (*axis.labels, CONTESTANT))),
            names={metric: table.labels.get(metric, self.number)},
            error=self.error(table),
            digits=table.digits,
            unit=table.unit,
            figure=table.figure,
            notes=tuple(dict.fromkeys([*_before(table, scores), *merged, *notes])),
        )

    @abstractmethod
    def fill(
        self,
        parts: Sequence[RatedGames],
        turns: Sequence[str],
        first: Mapping[str, int],
        title: Callable[[str], str],
        metric: str,
    ) -> tuple[Sequence[Column], Sequence[ContestantRows]]:
        """The columns, and the rows of each part.

        Args:
            parts: the games of each part of the table.
            turns: what turns are counted by, of `TURNS`.
            first: contestant → its place among the rows, where the entry says it.
            title: contestant → what readers see.
            metric: the name of the results.
        """


def turn_columns(turns: Sequence[str]) -> list[Column]:
    """A column for each of `TURNS` that is shown."""
    return [Column({"statistic": name}, (name,), form="share") for name in turns]


def _one(table: TableSpec) -> str:
    """Which games are one observation."""
    if table.cluster == ("episode",):
        return "Games are independent"
    which = clusters_in_words(table) if table.cluster else "games of a case between the same contestants"
    return f"{which[0].upper()}{which[1:]} are one observation"


def _title(axis: Axis, scores: Sequence[EpisodeScore], contestants: Container[str]) -> Callable[[str], str]:
    """What readers see for a contestant: the name of the model under test for "model", if it is one and no other's."""
    models = {score.model for score in scores}
    model = models.pop() if len(models) == 1 else UNDER_TEST
    if model in contestants:
        return axis.title
    return lambda name: model if name == UNDER_TEST else axis.title(name)


def _row(axis: Axis, key: Key, name: str, title: str, cells: Sequence[Cell], metric: str) -> Row:
    values = {**axis.values(key), CONTESTANT: name}
    return Row(values, (*map(axis.title, key), title), tuple(cells), metric)


def _before(table: TableSpec, scores: Sequence[EpisodeScore]) -> Iterable[str]:
    if table.note:
        yield table.note
    yield from of_episodes(scores)
    if scores:
        yield from without_number(table, scores, table.cells[0])
