"""One self-contained HTML page of tables. Everything that comes from a model, a spec or a run is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from itertools import groupby
from typing import Final

from harness.printable import clean_name
from harness.tables import Table

from .render import Grid, grid

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; color: #1b1f24; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .5rem 0; }
th, td { padding: .25rem .75rem; text-align: right; }
thead th { border-bottom: 1px solid #8c959f; text-align: center; }
.name { text-align: left; }
tr.published { color: #57606a; font-style: italic; }
tbody tr:nth-child(even) { background: #f6f8fa; }
section { margin-bottom: 2.5rem; overflow-x: auto; }
.notes { color: #57606a; font-size: .9em; padding-left: 1.2rem; }
"""
_PUBLISHED: Final = ' class="published"'


def page(title: str, tables: Iterable[Table]) -> str:
    """A page that needs no other file and runs no script.

    Args:
        title: heading of the page.
        tables: what to show, in order.
    """
    sections = "".join(f"<section>{_table(table)}</section>\n" for table in tables)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{_safe(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>{_safe(title)}</h1>\n\n{sections}</body></html>\n"
    )


def _table(table: Table) -> str:
    texts = grid(table)
    # A figure is shown as tidy rows, a table row by row: only the latter shows which row is published.
    published = [False] * len(texts.body) if table.figure else [row.published is not None for row in table.rows]
    body = "".join(
        f"<tr{_PUBLISHED if marked else ''}>{_cells(row, texts, i)}</tr>\n"
        for i, (row, marked) in enumerate(zip(texts.body, published, strict=True))
    )
    notes = "".join(f"<li>{_safe(note)}</li>" for note in table.notes)
    return (
        f"<table><caption>{_safe(table.title)}</caption>\n<thead>{_header(texts)}</thead>\n<tbody>{body}</tbody></table>"
        + (f'<ul class="notes">{notes}</ul>' if notes else "")
    )


def _header(texts: Grid) -> str:
    """A line a level; neighbors with the same name above them share a cell."""
    lines = []
    for level in range(max(map(len, texts.header), default=0)):
        cells = ""
        for _, same in groupby(enumerate(texts.header), key=lambda x: (x[0] < texts.names, x[1][: level + 1])):
            columns = list(same)
            spread = [columns] if level < len(columns[0][1]) - 1 else [[column] for column in columns]
            for part in spread:
                cells += f'<th colspan="{len(part)}">{escape(part[0][1][level])}</th>'
        lines.append(f"<tr>{cells}</tr>")
    return "".join(lines)


def _cells(row: list[str], texts: Grid, line: int) -> str:
    named = "".join(f'<th class="name" scope="row">{escape(cell)}</th>' for cell in row[: texts.names])
    cells = [
        f"<strong>{escape(cell)}</strong>" if (line, j) in texts.best else escape(cell) for j, cell in enumerate(row)
    ]
    return named + "".join(f"<td>{cell}</td>" for cell in cells[texts.names :])


def _safe(value: str) -> str:
    return escape(clean_name(value))
