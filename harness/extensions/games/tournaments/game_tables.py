"""Tables of games: ratings, each contestant against each, each with itself."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace

from harness.api import Metric
from harness.api.errors import SpecError
from harness.tables.axis import Axis, Key
from harness.tables.notes import clusters_in_words, of_episodes, without_number
from harness.tables.scores import EpisodeScore
from harness.tables.spec import TableSpec
from harness.tables.table import Cell, Row, Table

from . import cross_play, ratings
from .results import RatedGames, ResultsMetric, games_of, turns_shown
from .standings import together
from .table_kinds import CONTESTANT, OPPONENT, CrossPlayTable, Games, RatingTable

UNDER_TEST = "model"
"""How specs call the model under test."""


def game_table(table: TableSpec, how: Games, metrics: Mapping[str, Metric], scores: Sequence[EpisodeScore]) -> Table:
    """The table of this kind: for each row key and model the contestants, the best first.

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
            how.min_legal,
        )
        for key, games in played.items()
    }
    first = {name: i for i, name in enumerate(table.order.get(CONTESTANT, ()))}
    rows: list[Row] = []
    notes: list[str] = []
    opponents: list[str] = []
    turns = turns_shown(parts.values())
    if isinstance(how, CrossPlayTable):
        opponents = cross_play.opponents(how, parts.values(), first)
    for key, part in parts.items():
        where = f"{', '.join(map(axis.title, key))}: " if len(parts) > 1 else ""
        made = (
            ratings.rated(how, part, turns)
            if isinstance(how, RatingTable)
            else cross_play.matrix(how, part, opponents, turns)
            if isinstance(how, CrossPlayTable)
            else cross_play.gaps(part)
        )
        ordered = sorted(made.rows, key=lambda row: first.get(row[0], len(first)))
        rows += [_row(axis, key, name, title(name), cells, metric) for name, cells in ordered]
        notes += [where + note for note in (*made.notes, *part.turn_notes())]
    columns = {
        "rating": lambda: ratings.columns(turns),
        "cross_play": lambda: cross_play.columns(opponents, title, metric, turns),
        "self_play": cross_play.gap_columns,
    }[how.name]()
    shares = isinstance(how, CrossPlayTable) and how.value == "points"
    done = Table(
        title=table.title,
        row_labels=(*axis.labels, CONTESTANT),
        column_labels=(OPPONENT if isinstance(how, CrossPlayTable) else "statistic",),
        columns=tuple(columns),
        rows=tuple(rows),
        row_names=tuple(map(axis.title, (*axis.labels, CONTESTANT))),
        names={metric: table.labels.get(metric, "share of points" if shares else "mean return")},
        error=table.uncertainty if isinstance(how, CrossPlayTable) else "interval",
        digits=table.digits,
        unit=table.unit,
        figure=table.figure,
    )
    return replace(done, notes=tuple(dict.fromkeys([*_before(table, scores), *merged, *notes])))


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
