"""A grid of texts on a screen that is too narrow for it, and nothing of it lost.

The first of these that fits: header wrapped; fewer decimals; long names wrapped; parts below each other, each with the
names of its rows. Rows and columns are swapped before that where the numbers are too wide beside the shortest names, so
that names never decide which way a table lies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from harness.tables import Cell, Column, Table, error_of

from .grid import FACTORS, grid
from .layout import GAP, Grid, block, measure, total, widest, words, wrapped

MAX_LINES: Final = 4
"""Lines that a level of the header may take before something else is done."""
NAME_LINES: Final = 2
"""Lines that a name of a row may take before something else is done."""
ACROSS: Final = "\u00a0→"
"""Behind a title in the corner of a table that says what is above the other columns."""
WORD: Final = 12
"""Words up to this width are not broken while two columns have room."""


def fitted(table: Table, width: int) -> list[str]:
    """The lines of a table that is wider than `width` columns; none of them is."""
    texts, short = grid(table), grid(fewest_decimals(table))
    attempts = [(texts, False), (short, False), (texts, True), (short, True)]
    if 0 < len(texts.body) <= len(texts.header) and not texts.groups and _least(short, table) > width:
        short = _swapped(short)
        attempts = [(_swapped(texts), True), (short, True)]
    for one, narrow in attempts:
        if (widths := _fit(one, width, narrow)) is not None:
            return block(one, widths)
    return _parts(short, width)


def _least(texts: Grid, table: Table) -> int:
    """How wide the table is at least, whatever its rows and columns are called: titles of metrics and of columns of
    names are the spec's, other names are the data's (models, conditions)."""
    if not table.is_data:
        kept = [i for i, label in enumerate(table.column_labels) if label == "metric"]
        header = [tuple(levels[i] for i in kept) or ("",) for levels in texts.header[texts.names :]]
        texts = replace(texts, header=[*texts.header[: texts.names], *header])
    titles = [min(max(map(measure, levels)), WORD) for levels in texts.header[: texts.names]]
    return total([*titles, *_widths(texts, widest(texts), MAX_LINES)[texts.names :]])


def fewest_decimals(table: Table) -> Table:
    """The table with the fewest decimals that say something: an error keeps two digits, and no other number of its
    metric changes but for zeros at its end."""
    cells: dict[str, list[tuple[Column, Cell]]] = {}
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            if (metric := column.metric or row.metric) is not None and column.form in ("quantity", "plain"):
                cells.setdefault(metric, []).append((column, cell))
    digits = {
        metric: next(
            d for d in range(table.decimals(metric) + 1) if all(_enough(d, *one, table, metric) for one in own)
        )
        for metric, own in cells.items()
    }
    named = {name: table.decimals(name) for name in table.digits} if isinstance(table.digits, Mapping) else {}
    return replace(table, digits={**named, **digits})


def _enough(digits: int, column: Column, cell: Cell, table: Table, metric: str) -> bool:
    """Whether a cell says with so many decimals what it says with the table's."""
    full, unit = table.decimals(metric), table.unit_of(metric) if column.form == "quantity" else None
    kind = error_of(table.error, metric) if column.form == "quantity" else None
    spread = None if cell.low is None or cell.high is None else (cell.high - cell.low) / 4
    error = {"std": cell.std, "sem": cell.stderr, "interval": spread, None: None}[kind]
    if error is not None and error * FACTORS[unit][0] * 10**digits >= 9.5:
        return True
    shown = [cell.value, *([cell.low, cell.high] if kind == "interval" else [error])]
    return all(
        float(f"{x * FACTORS[unit][0]:.{digits}f}") == float(f"{x * FACTORS[unit][0]:.{full}f}")
        for x in shown
        if x is not None and math.isfinite(x)
    )


def _swapped(texts: Grid) -> Grid:
    """Rows as columns. Names of rows are above them, level by level, and their titles in the corner with an arrow, as
    what stands below the corner is of another kind."""
    titles = [f"{levels[-1]}{ACROSS}" if levels[-1] else "" for levels in texts.header[: texts.names]]
    shown = [i for i in range(len(texts.header[-1])) if any(levels[i] for levels in texts.header[texts.names :])] or [0]
    corner = [tuple(titles) or ("",), *[("",) * max(len(titles), 1)] * (len(shown) - 1)]
    above = [tuple(row[: texts.names]) or ("",) for row in texts.body]
    body = [
        [*(texts.header[j][i] for i in shown), *(row[j] for row in texts.body)]
        for j in range(texts.names, len(texts.header))
    ]
    return Grid([*corner, *above], body, len(shown))


def _part(texts: Grid, columns: Sequence[int]) -> Grid:
    """These columns behind those of the names."""
    kept = [*range(texts.names), *columns]
    return replace(texts, header=[texts.header[j] for j in kept], body=[[row[j] for j in kept] for row in texts.body])


def _fit(texts: Grid, width: int, narrow: bool) -> list[int] | None:
    """Widths of columns with the lowest header that fits; None if none does. With `narrow` names may be wrapped."""
    bodies, floors = widest(texts), _floors(texts, NAME_LINES) if narrow else []
    if total([*floors, *bodies[len(floors) :]]) > width:
        return None
    for lines in (MAX_LINES,) if narrow else range(1, MAX_LINES + 1):
        widths = _widths(texts, bodies, lines)
        _shrink(widths, total(widths) - width, floors)
        if total(widths) <= width:
            return widths
    return None


def _widths(texts: Grid, bodies: Sequence[int], lines: int) -> list[int]:
    """Of columns whose titles take at most so many lines a level, if words allow it."""
    return [
        max(own, 1, *(_narrowest(title, lines) for title in levels))
        for own, levels in zip(bodies, texts.header, strict=True)
    ]


def _floors(texts: Grid, lines: int) -> list[int]:
    """How narrow columns of names get if each name may take so many lines, and no word is broken."""
    cells = [[*texts.header[j], *(row[j] for row in texts.body)] for j in range(texts.names)]
    return [max(_narrowest(cell, lines) for cell in own) for own in cells]


def _shrink(widths: list[int], excess: int, floors: Sequence[int]) -> None:
    """Take the excess from the widest columns that have a floor, one blank after another, as far as floors allow."""
    for _ in range(excess):
        wide = [j for j, floor in enumerate(floors) if widths[j] > floor]
        if not wide:
            return
        widths[max(wide, key=widths.__getitem__)] -= 1


def _narrowest(title: str, lines: int) -> int:
    if lines == 1:
        return measure(title)
    least = max(min(measure(word), WORD) for word in words(title))
    return next(w for w in range(least, measure(title) + 1) if w == measure(title) or len(wrapped(title, w)) <= lines)


def _parts(texts: Grid, width: int) -> list[str]:
    """As few parts below each other as possible, about equally wide."""
    widths, names = _widths(texts, widest(texts), MAX_LINES), texts.names
    usual, floors, values = _floors(texts, NAME_LINES), _floors(texts, width), max(widths[names:], default=-GAP)
    most = max(width // 2, min(total(floors), width - GAP - values))
    for least in (usual, floors, [1] * names):
        _shrink(widths, total(widths[:names]) - most, least)
    if names == len(widths):
        return block(texts, widths)
    room = width - sum(w + GAP for w in widths[:names])
    widths = [*widths[:names], *(min(w, room) for w in widths[names:])]
    parts = _packed(widths, names, room)
    for limit in range(max(widths[names:]), room):
        if len(even := _packed(widths, names, limit)) == len(parts):
            parts = even
            break
    lines: list[str] = []
    for columns in parts:
        part = _part(texts, columns)
        own = _fit(part, width, False) or [*widths[:names], *(widths[j] for j in columns)]
        lines += [*([""] if lines else []), *block(part, own)]
    return lines


def _packed(widths: Sequence[int], first: int, room: int) -> list[list[int]]:
    """Columns from `first` on in parts that are at most `room` wide, one after another."""
    parts: list[list[int]] = [[]]
    for j in range(first, len(widths)):
        if parts[-1] and total([widths[i] for i in (*parts[-1], j)]) > room:
            parts.append([])
        parts[-1].append(j)
    return parts
