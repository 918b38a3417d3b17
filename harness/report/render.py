"""A table as text, Markdown, CSV, LaTeX or JSON. Names come from models and specs: they are data in every format."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from typing import Final, Literal, get_args

from harness.api.errors import UserError, near
from harness.api.printable import clean_name, csv_cell
from harness.tables import (
    Table,
)

from .grid import grid, tabulated
from .layout import laid_out, wrapped

Format = Literal["text", "markdown", "csv", "latex", "json"]
FORMATS: Final[tuple[str, ...]] = get_args(Format)


def render(table: Table, form: str = "text", width: int | None = None) -> str:
    """The table in one of `FORMATS`, ending in a newline.

    text, markdown, latex: title, grid (a figure: its tidy rows), notes; numbers rounded as the table says. Text is
    fitted to a screen of `width` columns, if one is given.
    csv: tidy rows, one a cell, numbers in full. json: `Table.to_json()`, every name exactly as it is.

    Raises:
        UserError: for another format.
    """
    if form == "text":
        return _text(table, width)
    if form not in _RENDERERS:
        raise UserError(f"unknown table format {form!r}", hint=near(form, FORMATS))
    return _RENDERERS[form](table)


def _text(table: Table, width: int | None) -> str:
    lines = [clean_name(table.title)] if width is None else wrapped(clean_name(table.title), width)
    lines += ["", *(laid_out(grid(table), width) or _narrow(table, width or 0))]
    lines += [""] if table.notes else []
    for note in map(clean_name, table.notes):
        first, *more = [note] if width is None else wrapped(note, width - len(INDENT))
        lines += [first, *(INDENT + line for line in more)]
    return "\n".join(lines) + "\n"


def _narrow(table: Table, width: int) -> list[str]:
    """The lines of a table that is wider than the screen."""
    from .narrow import fitted

    return fitted(table, width)


INDENT: Final = "  "
"""Before the later lines of a note."""


def _markdown(table: Table) -> str:
    lines = [
        f"### {_marked(table.title)}",
        "",
        tabulated(grid(table).map(markdown_escape).emphasized("**{}**").groups_emphasized("**{}**"), "pipe"),
    ]
    return "\n".join([*lines, *(f"\n{_marked(note)}" for note in table.notes)]) + "\n"


def _marked(name: str) -> str:
    return markdown_escape(clean_name(name))


def _csv(table: Table) -> str:
    tidy = table.long()
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if not table.columns:  # a table of texts
        writer.writerow(map(csv_cell, table.row_labels))
        writer.writerows(map(csv_cell, row.names) for row in table.rows)
        return out.getvalue()
    keys = list(dict.fromkeys(key for row in tidy for key in row))
    writer.writerow(map(csv_cell, keys))
    writer.writerows([csv_cell(row.get(key)) for key in keys] for row in tidy)
    return out.getvalue()


def _latex(table: Table) -> str:
    from .latex import latex

    return latex(table)


def _json(table: Table) -> str:
    return json.dumps(table.to_json(), indent=2, allow_nan=False) + "\n"


def markdown_escape(name: str) -> str:
    """The name as Markdown that shows it literally; underscores inside words need no backslash."""
    return re.sub(r"[\\`*\[\]<>|~#&$]|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", name)


_RENDERERS: Final[dict[str, Callable[[Table], str]]] = {
    "markdown": _markdown,
    "csv": _csv,
    "latex": _latex,
    "json": _json,
}
