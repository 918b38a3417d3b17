"""From scored episodes to a benchmark's tables, as plain data. How they look is `harness.report`'s business.

spec = TableSpec.parse({"title": "Fraction solved", "rows": "model", "columns": "problem", "metrics": "solved"})
table = build(spec, scores, metrics)
"""

from .build import build
from .entry import TableEntry
from .headline import HeadlineEntry, HeadlineSpec, check_headline
from .keys import TableKey
from .kinds import TableKind
from .result_rows import ResultRow, rows
from .scores import NOT_RUN, CorpusRecord, EpisodeScore, Number, load_scores
from .spec import DerivedCell, TableSpec, check
from .table import (
    SCHEMA,
    SIMULATED,
    SIMULATED_NAME,
    UNREAD,
    Cell,
    Column,
    ErrorKind,
    NumberForm,
    Row,
    Table,
    Unit,
    error_of,
    text,
)

__all__ = [
    "NOT_RUN",
    "SCHEMA",
    "SIMULATED",
    "SIMULATED_NAME",
    "UNREAD",
    "Cell",
    "Column",
    "CorpusRecord",
    "DerivedCell",
    "EpisodeScore",
    "ErrorKind",
    "HeadlineEntry",
    "HeadlineSpec",
    "Number",
    "NumberForm",
    "ResultRow",
    "Row",
    "Table",
    "TableEntry",
    "TableKey",
    "TableKind",
    "TableSpec",
    "Unit",
    "build",
    "check",
    "check_headline",
    "error_of",
    "load_scores",
    "rows",
    "text",
]
