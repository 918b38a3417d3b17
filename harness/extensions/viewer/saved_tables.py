"""`tables.json` of a run, as far as it is there and as the viewer draws it.

It may come from anyone: what is not of that shape is as if it were not there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from harness.api.run_files import TABLES
from harness.report.tables_json import SCHEMA, digest

_MAX_FILE_BYTES: Final = 1 << 26  # bytes


def read(folder: Path) -> dict[str, Any] | None:
    """What the run wrote; None if there is nothing, of other scores or another spec, or of another shape."""
    file = folder / TABLES
    try:
        if file.is_symlink() or not file.is_file() or file.stat().st_size > _MAX_FILE_BYTES:
            return None
        document = json.loads(file.read_bytes())
        if not _is_ours(document) or document["of"] != digest(folder):
            return None
    except (OSError, ValueError, RecursionError):
        return None
    return {"tables": document["tables"], "headline": document["headline"]}


def _is_ours(document: Any) -> bool:
    if not isinstance(document, dict) or document.get("schema") != SCHEMA or not isinstance(document.get("of"), str):
        return False
    tables, headline = document.get("tables"), document.get("headline")
    is_headline = headline is None or (
        isinstance(headline, dict)
        and all(isinstance(headline.get(name), str) for name in ("name", "metric", "better", "text"))
        and all(_is_number(headline.get(name)) for name in ("value", "low", "high", "n"))
        and isinstance(headline.get("why", ""), str)
    )
    return is_headline and isinstance(tables, list) and all(map(_is_table, tables))


def _is_table(table: Any) -> bool:
    if not isinstance(table, dict) or not isinstance(table.get("title"), str) or not _are_texts(table.get("notes")):
        return False
    shown, rows, heat = table.get("grid"), table.get("rows"), table.get("heat")
    if not isinstance(shown, dict) or not all(isinstance(shown.get(key), list) for key in ("header", "body", "best")):
        return False
    width = len(shown["header"])
    counts = [shown.get("names"), shown.get("groups")]
    return (
        all(map(_are_texts, shown["header"]))
        and all(_are_texts(row) and len(row) == width for row in shown["body"])
        and all(isinstance(count, int) and 0 <= count <= max(width, len(shown["body"])) for count in counts)
        and all(isinstance(at, list) and len(at) == 2 and all(map(_is_number, at)) for at in shown["best"])
        and isinstance(rows, list)
        and all(isinstance(row, dict) and isinstance(row.get("cells"), list) for row in rows)
        and all(isinstance(cell, dict) and _is_number(cell.get("value")) for row in rows for cell in row["cells"])
        and (heat is None or (isinstance(heat, list) and len(heat) == 3 and all(map(_is_number, heat[1:]))))
    )


def _are_texts(texts: Any) -> bool:
    return isinstance(texts, list) and all(isinstance(text, str) for text in texts)


def _is_number(number: Any) -> bool:
    return number is None or (isinstance(number, int | float) and not isinstance(number, bool))
