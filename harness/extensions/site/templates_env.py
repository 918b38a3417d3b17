"""How templates write: all text is escaped, cleaned of what hides or drives a screen, and cut where it is endless."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from harness.api.printable import clean, clean_name, cut
from harness.extensions.charts.page import chart_cell
from harness.transcripts.plain import finite

from .standing_rows import end_text

_MAX_TEXT_CHARS: Final = 4_000


def environment() -> Environment:
    """The templates of the pages."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_name,
    )
    made.filters["lines"] = _lines
    made.filters["code"] = _with_code
    made.filters["g"] = lambda x: f"{x:g}"
    made.filters["json"] = lambda value: json.dumps(value, ensure_ascii=False, default=str)
    made.globals["end_text"] = end_text
    made.filters["count"] = lambda x: f"{x:,}"
    made.filters["chart"] = chart_cell
    return made


def _name(value: Any) -> Any:
    """What a template writes: a text as a name, on one line."""
    if isinstance(value, Markup):
        return value
    return "" if value is None else clean_name(cut(str(value), _MAX_TEXT_CHARS))


def _lines(value: str, longest: int = 20_000) -> Markup:
    """A text with its lines; of a longer one the beginning, and how much there is more."""
    more = len(value) - longest
    return escape(clean(value[:longest])) + (f" … {more:,} more characters" if more > 0 else "")


def _with_code(value: str) -> Markup:
    """A note, with what stands between `backticks` as code."""
    parts = [escape(_name(part)) for part in value.split("`")]
    if len(parts) % 2 == 0:  # a backtick that is none of a pair
        return escape(_name(value))
    return Markup("").join(Markup("<code>{}</code>").format(part) if i % 2 else part for i, part in enumerate(parts))


def as_json(value: Any, ensure_ascii: bool = True) -> str:
    """The value as JSON; numbers that are not finite are null."""
    try:
        return json.dumps(value, ensure_ascii=ensure_ascii, allow_nan=False, default=str)
    except ValueError:
        return json.dumps(finite(value), ensure_ascii=ensure_ascii, allow_nan=False)


def for_script(value: Any) -> Markup:
    """JSON that may stand in a script element, and in a script."""
    written = as_json(value)
    return Markup(written.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))
