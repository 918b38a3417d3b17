"""A grid of texts as lines for a screen of some width, and nothing of it lost.

The first of these that fits: as it is; header wrapped; fewer decimals; long names wrapped; rows and columns swapped;
parts below each other, each with the names of its rows.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

GAP: Final = 2
"""Blanks between columns."""
ROOMY: Final = 2
"""How much wider than its title a column is where there is room."""
MOST_LINES: Final = 4
"""Lines that a level of the header may take before something else is done."""
NAME_LINES: Final = 2
"""Lines that a name of a row may take before something else is done."""
WORD: Final = 12
"""Words up to this width are not broken while two columns have room."""
BREAKS: Final = "/_-.,=:"
"""Longer words are broken behind one of these, if they have one."""


@dataclass(frozen=True, slots=True)
class Grid:
    """What there is to read: header levels for each column, rows of cells as shown, how many columns hold names."""

    header: list[tuple[str, ...]]
    body: list[list[str]]
    names: int
    best: frozenset[tuple[int, int]] = frozenset()
    """(row, column) of the cells to emphasize."""
    groups: int = 0
    """How many of the last rows stand for several others: they are set apart."""

    def map(self, change: Callable[[str], str]) -> Grid:
        """The grid with every text changed."""
        header = [tuple(map(change, levels)) for levels in self.header]
        return replace(self, header=header, body=[list(map(change, row)) for row in self.body])

    def emphasized(self, form: str) -> Grid:
        """The grid with the best cells put into `form`, such as `**{}**`."""
        body = [
            [form.format(cell) if (i, j) in self.best else cell for j, cell in enumerate(row)]
            for i, row in enumerate(self.body)
        ]
        return replace(self, body=body)

    def groups_emphasized(self, form: str) -> Grid:
        """The grid with the names of the rows of groups put into `form`, where no line can set them apart."""
        split = len(self.body) - self.groups
        named = [
            [*(form.format(x) if x else x for x in row[: self.names]), *row[self.names :]] for row in self.body[split:]
        ]
        return replace(self, body=[*self.body[:split], *named])

    def swapped(self) -> Grid:
        """Rows as columns. Names of rows stand above them, level by level, and their titles in the corner."""
        titles = [levels[-1] for levels in self.header[: self.names]]
        shown = [i for i in range(len(self.header[-1])) if any(levels[i] for levels in self.header[self.names :])] or [
            0
        ]
        corner = [tuple(titles) or ("",), *[("",) * max(len(titles), 1)] * (len(shown) - 1)]
        above = [tuple(row[: self.names]) or ("",) for row in self.body]
        body = [
            [*(self.header[j][i] for i in shown), *(row[j] for row in self.body)]
            for j in range(self.names, len(self.header))
        ]
        return Grid([*corner, *above], body, len(shown))

    def part(self, columns: Sequence[int]) -> Grid:
        """These columns behind those of the names."""
        kept = [*range(self.names), *columns]
        return replace(self, header=[self.header[j] for j in kept], body=[[row[j] for j in kept] for row in self.body])


def laid_out(texts: Grid, width: int | None, fewer: Callable[[], Grid]) -> list[str]:
    """The lines of a table. None is wider than `width`, in columns of a screen; without one nothing is wrapped.

    `fewer` makes the same grid with fewer decimals.
    """
    bodies = zip(_bodies(texts), texts.header, strict=True)
    natural = [max(own, ROOMY + max(map(measure, levels))) for own, levels in bodies]
    if width is None or _total(natural) <= width:
        return _block(texts, natural)
    short = fewer()
    swaps = 0 < len(texts.body) <= len(texts.header) and not texts.groups
    attempts = [(texts, False), (short, False), (texts, True), (short, True)]
    attempts += [(texts.swapped(), True), (short.swapped(), True)] if swaps else []
    for grid, narrow in attempts:
        if (widths := _fit(grid, width, narrow)) is not None:
            return _block(grid, widths)
    return min((_parts(grid, width) for grid in (short, *([short.swapped()] if swaps else []))), key=len)


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` (> 1), broken at blanks; longer words behind one of `BREAKS`, or anywhere.

    >>> wrapped("parse failures of agentsnet/classical", 10)
    ['parse', 'failures', 'of', 'agentsnet/', 'classical']
    """
    if measure(text) <= width:
        return [text]
    lines = [""]
    for word in _words(text):
        if lines[-1] and measure(lines[-1]) + 1 + measure(word) <= width:
            lines[-1] += f" {word}"
            continue
        pieces = [*_pieces(word, width)]
        lines = [*lines, *pieces] if lines != [""] else pieces
    return lines


@functools.lru_cache(8192)
def measure(text: str) -> int:
    """How many columns of a screen a text takes: two for a wide character, none for a combining one."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(c) in "FW" else not unicodedata.combining(c) for c in text)


def _words(text: str) -> list[str]:
    """What stands between blanks; a mark stays with what it marks."""
    return re.split(" (?![†‡])", text)


def _pieces(word: str, width: int) -> Iterator[str]:
    while measure(word) > width:
        fits = next(i for i in range(len(word), 0, -1) if i == 1 or measure(word[:i]) <= width)
        at = max(word.rfind(c, 0, fits) for c in BREAKS) + 1 or fits
        yield word[:at]
        word = word[at:]
    yield word


def _bodies(texts: Grid) -> list[int]:
    """For each column the width of its widest cell."""
    return [max((measure(row[j]) for row in texts.body), default=0) for j in range(len(texts.header))]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _fit(texts: Grid, width: int, narrow: bool) -> list[int] | None:
    """Widths of columns with the lowest header that fits; None if none does. With `narrow` names may be wrapped."""
    bodies, floors = _bodies(texts), _floors(texts, NAME_LINES) if narrow else []
    if _total([*floors, *bodies[len(floors) :]]) > width:
        return None
    for lines in (MOST_LINES,) if narrow else range(1, MOST_LINES + 1):
        widths = _widths(texts, bodies, lines)
        _shrink(widths, _total(widths) - width, floors)
        if _total(widths) <= width:
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
    least = max(min(measure(word), WORD) for word in _words(title))
    return next(w for w in range(least, measure(title) + 1) if w == measure(title) or len(wrapped(title, w)) <= lines)


def _parts(texts: Grid, width: int) -> list[str]:
    """As few parts below each other as there can be, about equally wide."""
    widths, names = _widths(texts, _bodies(texts), MOST_LINES), texts.names
    usual, floors, values = _floors(texts, NAME_LINES), _floors(texts, width), max(widths[names:], default=-GAP)
    most = max(width // 2, min(_total(floors), width - GAP - values))
    for least in (usual, floors, [1] * names):
        _shrink(widths, _total(widths[:names]) - most, least)
    if names == len(widths):
        return _block(texts, widths)
    room = width - sum(w + GAP for w in widths[:names])
    widths = [*widths[:names], *(min(w, room) for w in widths[names:])]
    parts = _packed(widths, names, room)
    for limit in range(max(widths[names:]), room):
        if len(even := _packed(widths, names, limit)) == len(parts):
            parts = even
            break
    lines: list[str] = []
    for columns in parts:
        part = texts.part(columns)
        own = _fit(part, width, False) or [*widths[:names], *(widths[j] for j in columns)]
        lines += [*([""] if lines else []), *_block(part, own)]
    return lines


def _packed(widths: Sequence[int], first: int, room: int) -> list[list[int]]:
    """Columns from `first` on in parts that are at most `room` wide, one after another."""
    parts: list[list[int]] = [[]]
    for j in range(first, len(widths)):
        if parts[-1] and _total([widths[i] for i in (*parts[-1], j)]) > room:
            parts.append([])
        parts[-1].append(j)
    return parts


def _block(texts: Grid, widths: Sequence[int]) -> list[str]:
    """Header, a rule, rows; before rows of groups another rule."""
    rule = (" " * GAP).join("-" * width for width in widths)
    levels = [[levels[i] for levels in texts.header] for i in range(max(map(len, texts.header), default=0))]
    lines = [line for level in levels for line in _row(level, widths, texts.names, bottom=True)]
    lines.append(rule)
    for i, row in enumerate(texts.body):
        lines += [rule] if texts.groups and i == len(texts.body) - texts.groups else []
        lines += _row(row, widths, texts.names)
    return lines


def _row(cells: Sequence[str], widths: Sequence[int], names: int, bottom: bool = False) -> Iterator[str]:
    """The lines of a row: names at the left of their columns, numbers at the right; short cells above, or at the
    bottom."""
    texts = [wrapped(cell, width) for cell, width in zip(cells, widths, strict=True)]
    height = max(map(len, texts), default=1)
    for i in range(height):
        line = []
        for j, (own, width) in enumerate(zip(texts, widths, strict=True)):
            at = i - (height - len(own) if bottom else 0)
            text = own[at] if 0 <= at < len(own) else ""
            blanks = " " * (width - measure(text))
            line.append(text + blanks if j < names else blanks + text)
        yield (" " * GAP).join(line).rstrip()
