"""From scored episodes to a benchmark's tables, as plain data. How they look is `harness.report`'s business.

spec = TableSpec.parse({"title": "Fraction solved", "rows": "model", "columns": "problem", "cell": "solved"})
table = build(spec, scores, metrics)
"""

from .build import build
from .costs import PRICES_SCHEMA, Price, Prices, read_prices
from .scores import NOT_RUN, EpisodeScore, Number, load_scores, rows
from .spec import JSON_SCHEMA, TableSpec, check
from .table import (
    INTERVALS,
    SCHEMA,
    SIMULATED,
    Cell,
    Column,
    ErrorKind,
    Form,
    Published,
    Record,
    Row,
    Table,
    Unit,
    error_of,
    text,
)

__all__ = [
    "INTERVALS",
    "JSON_SCHEMA",
    "NOT_RUN",
    "PRICES_SCHEMA",
    "SCHEMA",
    "SIMULATED",
    "Cell",
    "Column",
    "EpisodeScore",
    "ErrorKind",
    "Form",
    "Number",
    "Price",
    "Prices",
    "Published",
    "Record",
    "Row",
    "Table",
    "TableSpec",
    "Unit",
    "build",
    "check",
    "error_of",
    "load_scores",
    "read_prices",
    "rows",
    "text",
]
