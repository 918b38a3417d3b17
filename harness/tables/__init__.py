"""From scored episodes to a benchmark's tables, as plain data. How they look is `harness.report`'s business.

spec = TableSpec.parse({"title": "Fraction solved", "rows": "model", "columns": "problem", "cell": "solved"})
table = build(spec, scores, metrics)
"""

from .build import build
from .scores import NOT_RUN, EpisodeScore, load_scores, rows
from .spec import JSON_SCHEMA, TableSpec, check
from .table import SCHEMA, Cell, Column, Published, Record, Row, Table, text

__all__ = [
    "JSON_SCHEMA",
    "NOT_RUN",
    "SCHEMA",
    "Cell",
    "Column",
    "EpisodeScore",
    "Published",
    "Record",
    "Row",
    "Table",
    "TableSpec",
    "build",
    "check",
    "load_scores",
    "rows",
    "text",
]
