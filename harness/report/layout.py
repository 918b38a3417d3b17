"""A grid of texts as lines."""

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
        """The grid with `form`, such as `**{}**`, around the best cells."""
        body = [
            [form.format(cell) if (i, j) in self.best else cell for j, cell in enumerate(row)]
            for i, row in enumerate(self.body)
        ]
        return replace(self, body=body)

    def groups_emphasized(self, form: str) -> Grid:
        """The grid with `form` around the names of rows of groups, for formats in which no line can set them apart."""
        split = len(self.body) - self.groups
        named = [
            [*(form.format(x) if x else x for x in row[: self.names]), *row[self.names :]] for row in self.body[split:]
        ]
        return replace(self, body=[*self.body[:split], *named])


def laid_out(texts: Grid, width: int | None = None) -> list[str] | None:
    """The lines of a table, nothing wrapped; None if they are wider than `width`, in columns of a screen."""
    bodies = zip(widest(texts), texts.header, strict=True)
    natural = [max(own, ROOMY + max(map(measure, levels))) for own, levels in bodies]
    return block(texts, natural) if width is None or total(natural) <= width else None


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines of at most `width`, broken at blanks; longer words behind one of `BREAKS`, or anywhere.

    >>> wrapped("parse failures of agentsnet/classical", 10)
    ['parse', 'failures', 'of', 'agentsnet/', 'classical']
    """
    if measure(text) <= width:
        return [text]
    lines = [""]
    for word in words(text):
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


def words(text: str) -> list[str]:
    """What comes between blanks; a mark stays with what it marks."""
    return re.split(" (?![†‡])", text)


def _pieces(word: str, width: int) -> Iterator[str]:
    while word and measure(word) > width:
        fits = next(i for i in range(len(word), 0, -1) if i == 1 or measure(word[:i]) <= width)
        at = max(word.rfind(c, 0, fits) for c in BREAKS) + 1 or fits
        yield word[:at]
        word = word[at:]
    yield word


def widest(texts: Grid) -> list[int]:
    """For each column the width of its widest cell."""
    return [max((measure(row[j]) for row in texts.body), default=0) for j in range(len(texts.header))]


def total(widths: Sequence[int]) -> int:
    """The width of columns with the gaps between them."""
    return sum(widths) + GAP * (len(widths) - 1)


def block(texts: Grid, widths: Sequence[int]) -> list[str]:
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
