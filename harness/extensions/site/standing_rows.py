"""Rows of the pages' tables: standings with their pictures, leaders, profiles of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from harness.extensions.analysis.standings import Standing
from harness.report.grid import grid, number
from harness.tables import SIMULATED, Table

from . import addresses, drawings
from .content import BenchmarkPages, BoardPart, Content, Entry, Model
from .drawings import Ranks, Strip

MATRIX: Final = 16
"""So many benchmarks make a table with a column each; more are listed in the data alone."""
_MAX_ROWS: Final = 400
"""Rows of a spec's table on a page; longer ones are in data.json."""


@dataclass(frozen=True)
class StandingRow:
    """A row of standings.

    Attributes:
        rank, name, headline: texts.
        rest: the texts of the further columns.
        entry: the run's row; None of floors, ceilings and figures that were not run here.
    """

    rank: str
    name: str
    headline: str
    rest: Sequence[str]
    ranks: Ranks | None
    strip: Strip
    entry: Entry | None
    best: bool
    published: bool


def rows(part: BoardPart) -> list[StandingRow]:
    """The standings, row by row."""
    found = []
    for row, texts, cells in zip(part.section.board.rows, part.texts, part.table.rows, strict=True):
        rank, name, headline, *rest = texts
        bar = drawings.ranks(row.ranks, part.ranked)
        entry = part.entries.get(row.model) if row.role == "model" else None
        found.append(StandingRow(rank, name, headline, rest, bar, part.strip(row), entry, cells.cells[0].best,
                                 row.source is not None))  # fmt: skip
    return found


@dataclass(frozen=True)
class Leader:
    """Who is ahead in a benchmark.

    Attributes:
        entries: all with the best number.
        row: the first of their rows; None where nothing has a number.
        may: how many may be the first, given which differ significantly; 0 where it may not.
    """

    benchmark: BenchmarkPages
    entries: Sequence[Entry]
    row: Standing | None
    ranks: Ranks | None
    strip: Strip | None
    may: int


def leader(benchmark: BenchmarkPages) -> Leader:
    """Who is ahead, by the runs on the page over all benchmarks."""
    part, ahead = benchmark.main, benchmark.main.leaders()
    may = sum(one.may_be_first for one in part.entries.values()) if ahead and ahead[0].may_be_first else 0
    if not ahead:
        return Leader(benchmark, ahead, None, None, None, may)
    row = ahead[0].standing
    return Leader(benchmark, ahead, row, drawings.ranks(row.ranks, part.ranked), part.strip(row, True), may)


def facts(part: BoardPart) -> dict[str, Any]:
    """What a benchmark is measured by, and its floor and ceiling, for data.json."""
    headline, (floor, ceiling) = part.section.board.headline, part.ends
    known = {"metric": headline.metric, "headline": headline.name, "better": headline.better}
    return {**known, "floor": floor, "ceiling": ceiling, "ranked": part.ranked}


def end_text(part: BoardPart, which: int) -> str:
    """The number of the floor (0) or the ceiling (1), as tables show it."""
    return number(part.ends[which], part.table, part.section.board.headline.metric)


def has_numbers(table: Table) -> bool:
    """Whether a table has a number, and fits on a page."""
    return len(table.rows) <= _MAX_ROWS and any(cell.value is not None for row in table.rows for cell in row.cells)


@dataclass(frozen=True)
class ShownTable:
    """A table of texts.

    Attributes:
        header: lines of (text, columns that it spans, whether it names columns below).
        names: how many columns at the left name rows.
        body: rows of (text, whether it stands out).
        published: whether a row was not run here.
    """

    title: str
    header: Sequence[Sequence[tuple[str, int, bool]]]
    names: int
    body: Sequence[Sequence[tuple[str, bool]]]
    published: Sequence[bool]
    notes: Sequence[str]


def shown_table(table: Table) -> ShownTable:
    """A table as texts."""
    texts = grid(table)
    lines = []
    for level in range(max(map(len, texts.header), default=0)):
        line: list[tuple[str, int, bool]] = []
        for _, same in groupby(enumerate(texts.header), key=lambda x: (x[0] < texts.names, x[1][: level + 1])):
            columns = [*same]
            spread = [columns] if level < len(columns[0][1]) - 1 else [[column] for column in columns]
            line += [(part[0][1][level], len(part), level < len(part[0][1]) - 1) for part in spread]
        lines.append(line)
    body = [[(cell, (i, j) in texts.best) for j, cell in enumerate(row)] for i, row in enumerate(texts.body)]
    published = [False] * len(body) if table.is_data else [row.published is not None for row in table.rows]
    return ShownTable(table.title, lines, texts.names, body, published, table.notes)


# ---------------------------------------------------------------------------------------- models


@dataclass(frozen=True)
class ModelLine:
    """A model among all: in how many benchmarks it may be the first of several, and its average."""

    model: Model
    first: int
    average: str
    strip: Strip | None


def model_line(model: Model, content: Content, table: Table) -> ModelLine:
    """The line of a model; its average is that of `overall`, where it has one row there."""
    first = sum(one.may_be_first for one in model.main.values())
    names = {one.standing.model for one in model.main.values()}
    found = [row for row in table.rows if row.names[0] in names]
    place = next((i for i, column in enumerate(table.columns) if column.overall), None)
    if place is None or len(found) != 1 or (cell := found[0].cells[place]).value is None:
        return ModelLine(model, first, "–", None)
    text = grid(table).body[table.rows.index(found[0])][place + 1]
    return ModelLine(model, first, text, drawings.strip((0.0, 1.0), cell.value, (cell.low, cell.high)))


@dataclass(frozen=True)
class Matrix:
    """Models × benchmarks.

    Attributes:
        heads: (name, headline, address) of each column; the average has no address.
        rows: (name, address, [(text, whether it is the best)]).
    """

    heads: Sequence[tuple[str, str, str | None]]
    rows: Sequence[tuple[str, str | None, Sequence[tuple[str, bool]]]]


def matrix(table: Table, content: Content) -> Matrix:
    """The page over all benchmarks as a table."""
    pages = {one.main.section.board.name: one.page for one in content.benchmarks}
    models = {entry.standing.model: entry.model.page for benchmark in content.benchmarks for entry in benchmark.entries}
    texts = grid(table)
    heads = [
        (names[0], names[1], pages.get(str(column.key.get("benchmark"))))
        for names, column in zip(texts.header[1:], table.columns, strict=True)
    ]
    body = [
        (line[0], models.get(row.names[0]), [(cell, (i, j + 1) in texts.best) for j, cell in enumerate(line[1:])])
        for i, (row, line) in enumerate(zip(table.rows, texts.body, strict=True))
    ]
    return Matrix(heads, body)


def profile(model: Model) -> dict[str, Any]:
    """A model's numbers over benchmarks, for the script that shows them beside those of another."""
    return {
        "name": model.name,
        "on": {
            addresses.slug(name): [one.shown + _mark(one), one.standing.rank, _place(one)]
            for name, one in model.main.items()
        },
    }


def _mark(entry: Entry) -> str:
    return f" {SIMULATED}" if entry.standing.cell.uses_ground_truth else ""


def _place(entry: Entry) -> float | None:
    """Where a number lies in the picture from floor to ceiling of its board, in pixels."""
    return drawings.strip(entry.board.from_floor, entry.positions[0]).at


@dataclass(frozen=True)
class ProfileLine:
    """A benchmark on the page of a model: the model's rows there, and those of another model."""

    benchmark: BenchmarkPages
    entry: Entry
    shown: str
    strip: Strip | None
    other: Entry | None
    other_shown: str
    is_main: bool


def profile_lines(model: Model, other: Model | None) -> list[ProfileLine]:
    """A line a row of standings that is the model's, the other beside those on the page over all benchmarks."""
    lines, beside = [], other.main if other is not None else {}
    for one in sorted(model.entries, key=lambda one: (one.benchmark.name, one.board is not one.benchmark.main)):
        is_main = model.main.get(one.benchmark.name) is one
        its = beside.get(one.benchmark.name) if is_main else None
        value, low, high = one.positions
        picture = None
        if value is not None:
            at = its.positions[0] if its is not None else None
            picture = drawings.strip(one.board.from_floor, value, (low, high), (0.0, 1.0), (), at)
        text = its.shown + _mark(its) if its is not None else "–"
        lines.append(ProfileLine(one.benchmark, one, one.shown + _mark(one), picture, its, text, is_main))
    return lines


def default_other(model: Model, content: Content) -> Model | None:
    """The other model that shares most benchmarks with this one, of several the best there."""
    own = model.main

    def worth(other: Model) -> tuple[int, float, str]:
        shared: Mapping[str, Entry] = {name: one for name, one in other.main.items() if name in own}
        return len(shared), sum(one.positions[0] or 0.0 for one in shared.values()), other.name

    others = [one for one in content.models if one is not model and own.keys() & one.main.keys()]
    return max(others, key=worth, default=None)
