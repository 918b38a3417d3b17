"""Rows of a run as data frames of pandas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from harness.api.errors import SetupError

if TYPE_CHECKING:
    import pandas

    from harness.transcripts.tidy import TidyColumn


def of_rows(rows: Iterable[Mapping[str, Any]], columns: Sequence[TidyColumn]) -> pandas.DataFrame:
    """Rows of episodes or turns. Raises `SetupError` without pandas."""
    found = _pandas().DataFrame(rows, columns=[column.name for column in columns])
    types = {"number": "float64", "integer": "Int64"}
    frame: pandas.DataFrame = found.astype(
        {column.name: types[column.kind] for column in columns if column.kind in types}
    )
    return frame


def of_results(rows: Iterable[Mapping[str, Any]]) -> pandas.DataFrame:
    """Result rows, a column for each label. Raises `SetupError` without pandas."""
    flat = []
    for row in rows:
        plain = {k: v for k, v in row.items() if k != "labels"}
        # A label may be called like a column of every row (n): it then becomes label_n.
        labels = {f"label_{k}" if k in plain and plain[k] != v else k: v for k, v in row["labels"].items()}
        flat.append({**labels, **plain})
    frame: pandas.DataFrame = _pandas().DataFrame(flat)
    return frame


def _pandas() -> ModuleType:
    try:
        import pandas
    except ImportError:
        hint = 'pip install "mas-eval-harness[pandas]"'
        raise SetupError("to_pandas() needs the package pandas", hint=hint) from None
    return pandas
