"""Tidy tables as files: CSV, JSON lines, Parquet. Rows are written as they come."""

from __future__ import annotations

import contextlib
import csv
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from harness.api.errors import SetupError
from harness.api.printable import csv_cell
from harness.evaluation.run import Run
from harness.transcripts.inner_rows import COLUMNS, inner_rows
from harness.transcripts.tidy import Row, TidyColumn
from harness.transcripts.view_api import Transcript

from .form import ExportForm
from .texts import as_json

MAX_CELL_CHARS: Final = 32_767
"""Characters in a cell of a CSV file: what spreadsheets hold. Longer ones spill over into rows that do not exist."""
_ROWS_AT_ONCE: Final = 10_000
_TEXT_AT_ONCE: Final = 8 << 20  # characters


class Writer(ABC):
    """Writes the rows of one table to a file.

    Attributes:
        suffix: of its files.
    """

    suffix: ClassVar[str]

    def __init__(self, path: Path, columns: Sequence[TidyColumn]) -> None:
        self.columns = columns

    @abstractmethod
    def write(self, row: Row) -> None:
        """Add a row. Raises `OSError`."""

    @abstractmethod
    def close(self) -> None:
        """Write what is left. Raises `OSError`."""


class CSV(Writer):
    """One line a row; nested values as JSON. Spreadsheets run nothing in it (`harness.api.printable.csv_cell`)."""

    suffix = "csv"

    def __init__(self, path: Path, columns: Sequence[TidyColumn]) -> None:
        super().__init__(path, columns)
        self._file = path.open("x", encoding="utf-8", newline="")
        self._csv = csv.writer(self._file, lineterminator="\n")
        self._csv.writerow([csv_cell(column.name) for column in columns])

    def write(self, row: Row) -> None:
        self._csv.writerow([self._cell(row[column.name]) for column in self.columns])

    @staticmethod
    def _cell(value: Any) -> object:
        if isinstance(value, dict | list | tuple):
            value = as_json(value)
        cell = csv_cell(value)
        if isinstance(cell, str) and len(cell) > MAX_CELL_CHARS:
            mark = f"… [cut: {len(cell)} characters]"
            cell = cell[: MAX_CELL_CHARS - len(mark)] + mark
        return cell

    def close(self) -> None:
        self._file.close()


class JSONLines(Writer):
    """One JSON object a row."""

    suffix = "jsonl"

    def __init__(self, path: Path, columns: Sequence[TidyColumn]) -> None:
        super().__init__(path, columns)
        self._file = path.open("x", encoding="utf-8")

    def write(self, row: Row) -> None:
        self._file.write(as_json(row) + "\n")

    def close(self) -> None:
        self._file.close()


class Parquet(Writer):
    """Typed columns, compressed, in row groups. Values of the kind "json" are JSON texts."""

    suffix = "parquet"

    def __init__(self, path: Path, columns: Sequence[TidyColumn]) -> None:
        super().__init__(path, columns)
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            hint = 'pip install "mas-eval-harness[parquet]"'
            raise SetupError("writing Parquet needs the package pyarrow", hint=hint) from None
        message = pyarrow.struct([("role", pyarrow.string()), ("content", pyarrow.string())])
        types = {
            "text": pyarrow.string(),
            "json": pyarrow.string(),
            "integer": pyarrow.int64(),
            "number": pyarrow.float64(),
            "flag": pyarrow.bool_(),
            "texts": pyarrow.list_(pyarrow.string()),
            "messages": pyarrow.list_(message),
        }
        self._schema = pyarrow.schema(
            [
                pyarrow.field(column.name, types[column.kind], metadata={"description": column.about})
                for column in columns
            ]
        )
        self._pyarrow = pyarrow
        self._writer = parquet.ParquetWriter(path, self._schema, compression="zstd")
        self._rows: list[Row] = []
        self._size = 0

    def write(self, row: Row) -> None:
        values = {column.name: self._value(row[column.name], column) for column in self.columns}
        self._rows.append(values)
        self._size += sum(map(_length, values.values()))
        if len(self._rows) >= _ROWS_AT_ONCE or self._size >= _TEXT_AT_ONCE:
            self._flush()

    @staticmethod
    def _value(value: Any, column: TidyColumn) -> Any:
        return as_json(value) if column.kind == "json" and value is not None else value

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(self._pyarrow.Table.from_pylist(self._rows, schema=self._schema))
        self._rows, self._size = [], 0

    def close(self) -> None:
        self._flush()
        self._writer.close()


WRITERS: Final[Mapping[str, type[Writer]]] = {writer.suffix: writer for writer in (CSV, JSONLines, Parquet)}
TABLES: Final = ("episodes", "turns")
INNER: Final = "inner_calls"


def tables_of(run: Run) -> tuple[str, ...]:
    """The names of a run's tables: inner calls are a third one where its agents' programs had a model to call."""
    return (*TABLES, INNER) if run.tidy.has_inner_calls else TABLES


def write_tables(run: Run, form: str, folder: Path) -> tuple[int, int]:
    """Write a file of episodes, a file of turns, and one of inner calls if there may be any, in one pass over the
    journal.

    Args:
        run: a finished run.
        form: a key of `WRITERS`.
        folder: exists.

    Returns:
        how many episodes and turns there are.

    Raises:
        DataError: the journal is damaged.
        SetupError: a package is missing.
        OSError: a file cannot be written.
    """
    kind = WRITERS[form]
    tidy = run.tidy
    counts = [0, 0]
    with (
        contextlib.ExitStack() as done,
        _writing(kind, folder / f"{TABLES[0]}.{kind.suffix}", tidy.episode_columns) as episodes,
        _writing(kind, folder / f"{TABLES[1]}.{kind.suffix}", tidy.turn_columns) as turns,
    ):
        inner = None
        if tidy.has_inner_calls:
            inner = done.enter_context(_writing(kind, folder / f"{INNER}.{kind.suffix}", COLUMNS))
        for episode, its_turns in tidy.rows(_noting(run, inner)):
            episodes.write(episode)
            counts[0] += 1
            counts[1] += _write(turns, its_turns)
    return counts[0], counts[1]


def _noting(run: Run, inner: Writer | None) -> Iterator[Transcript]:
    """The run's transcripts, whose inner calls are written as they are read."""
    for transcript in run.transcripts():
        if inner is not None:
            _write(inner, inner_rows(str(run.meta["run"]), transcript))
        yield transcript


def _write(writer: Writer, rows: Iterable[Row]) -> int:
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007
        writer.write(row)
    return count


@contextlib.contextmanager
def _writing(kind: type[Writer], path: Path, columns: Sequence[TidyColumn]) -> Iterator[Writer]:
    """A writer that is closed in the end; what closing it raises matters only where nothing else was raised."""
    writer = kind(path, columns)
    try:
        yield writer
    except BaseException:
        with contextlib.suppress(Exception):
            writer.close()
        raise
    writer.close()


def _length(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    return (
        sum(map(_length, value.values() if isinstance(value, dict) else value)) if isinstance(value, dict | list) else 8
    )


def form_of(name: str) -> ExportForm:
    """Both tables as files of a kind."""

    def write(run: Run, folder: Path) -> str:
        return counted(*write_tables(run, name, folder))

    return ExportForm(lambda run: tuple(f"{table}.{WRITERS[name].suffix}" for table in tables_of(run)), write)


def counted(episodes: int, turns: int) -> str:
    """What is in two tables, in words."""
    return f"{episodes:,} episodes, {turns:,} turns"


PARQUET_FORM, CSV_FORM, JSONL_FORM = map(form_of, ("parquet", "csv", "jsonl"))
