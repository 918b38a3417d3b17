"""HTML pages in one file: tables, and what every page has in common. Everything that comes from a model, a spec or a
run is escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection, Iterable, Sequence
from html import escape
from itertools import groupby
from typing import Final

from harness.api.printable import clean_name, cut
from harness.report.grid import grid
from harness.report.layout import Grid
from harness.tables import Table

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1f2328; --dim: #59636e; --page: #fff; --band: #f6f8fa; --line: #d1d9e0;
  --mark: #0969da; --good: #1a7f37; --bad: #bc4c00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --dim: #9198a1; --page: #0d1117; --band: #161b22;
  --line: #3d444d; --mark: #58a6ff; --good: #3fb950; --bad: #f0883e; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; color: var(--ink);
  background: var(--page); overflow-wrap: anywhere; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
caption { text-align: left; font-weight: 600; padding: .5rem 0; }
th, td { padding: .25rem .75rem; text-align: right; white-space: nowrap; }
thead th { border-bottom: 1px solid var(--dim); text-align: center; }
.name { text-align: left; font-weight: 500; white-space: normal; min-width: 6rem; max-width: 24rem; }
tr.published { color: var(--dim); font-style: italic; }
tbody.groups tr:first-child > * { border-top: 1px solid var(--dim); }
tbody tr:nth-child(even) { background: var(--band); }
section { margin-bottom: 2.5rem; }
.wide { overflow-x: auto; max-width: 100%; }
.wide + .wide, .notes + .wide { margin-top: 1.2rem; }
.notes { color: var(--dim); font-size: .9em; padding-left: 1.2rem; }
"""
_MAX_CELL_CHARS: Final = 4_000
_PUBLISHED: Final = ' class="published"'


def page(title: str, tables: Iterable[Table]) -> str:
    """A page of tables that needs no other file and runs no script.

    Args:
        title: heading of the page.
        tables: what to show, in order.
    """
    sections = "".join(f"<section>{table_html(table)}</section>\n" for table in tables)
    return document(title, f"<h1>{safe(title)}</h1>\n\n{sections}")


def document(title: str, body: str, style: str = "", script: str = "") -> str:
    """A whole page: it fetches nothing, and runs nothing but `script`, which its policy names by its hash."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy += f"; script-src 'sha256-{digest}'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{safe(title)}</title><style>{_STYLE}{style}</style></head>\n"
        f"<body>{body}" + (f"<script>{script}</script>" if script else "") + "</body></html>\n"
    )


def table_html(table: Table, kind: str = "") -> str:
    """A table with its notes; `kind` is a class of CSS."""
    texts = grid(table)
    # A figure is shown as tidy rows, a table row by row: only the latter shows which row is published.
    published = [False] * len(texts.body) if table.is_data else [row.published is not None for row in table.rows]
    best: dict[int, list[int]] = {}
    for line, column in texts.best:
        best.setdefault(line, []).append(column)
    lines = [
        f"<tr{_PUBLISHED if marked else ''}>{_cells(row, texts.names, best.get(i, ()))}</tr>\n"
        for i, (row, marked) in enumerate(zip(texts.body, published, strict=True))
    ]
    split = len(lines) - texts.groups
    body = "".join(lines[:split])
    if texts.groups:
        body += f'</tbody>\n<tbody class="groups">{"".join(lines[split:])}'
    notes = "".join(f"<li>{safe(note)}</li>" for note in table.notes)
    return _framed(f"<caption>{safe(table.title)}</caption>\n<thead>{_header(texts)}</thead>", body, kind) + (
        f'<ul class="notes">{notes}</ul>' if notes else ""
    )


def plain_table(columns: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """A small table of texts; the first column has the rows' names."""
    header = "".join(f'<th scope="col">{safe(column)}</th>' for column in columns)
    body = "".join(f"<tr>{_cells([clean_name(cell[:_MAX_CELL_CHARS]) for cell in row], 1)}</tr>\n" for row in rows)
    return _framed(f"<thead><tr>{header}</tr></thead>", body, kind)


def _framed(head: str, body: str, kind: str) -> str:
    of_kind = f' class="{kind}"' if kind else ""
    table = f"<table{of_kind}>{head}\n<tbody>{body}</tbody></table>"
    return f'<div class="wide" tabindex="0" role="region" aria-label="Table">{table}</div>'


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


def _cells(row: Sequence[str], names: int, best: Collection[int] = ()) -> str:
    """A row's cells; `best`: the numbers of those that stand out."""
    named = "".join(f'<th class="name" scope="row">{escape(cell)}</th>' for cell in row[:names])
    cells = [f"<strong>{escape(cell)}</strong>" if j in best else escape(cell) for j, cell in enumerate(row)]
    return named + "".join(f"<td>{cell}</td>" for cell in cells[names:])


def safe(value: str) -> str:
    """A name as HTML shows it, of a long one its first 4,000 characters."""
    return escape(clean_name(cut(value, _MAX_CELL_CHARS)))
