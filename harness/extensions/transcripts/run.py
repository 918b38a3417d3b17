"""What `harness.Run` gives of its journal: transcripts, rows, data frames."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.errors import SetupError
from harness.extensions.transcripts.reader import Transcripts
from harness.extensions.transcripts.tidy import Tidy
from harness.extensions.transcripts.view_api import Transcript
from harness.results import Run

if TYPE_CHECKING:
    import pandas


def transcripts(run: Run) -> Iterator[Transcript]:
    """`Run.transcripts`."""
    return iter(Transcripts(run.folder, run.project))


def tidy(run: Run) -> Tidy:
    """`Run.tidy`."""
    return Tidy(run.meta, run.scores, run.metrics, run.folder)


def frame(run: Run, rows: str) -> pandas.DataFrame:
    """`Run.to_pandas`."""
    try:
        import pandas
    except ImportError:
        hint = 'pip install "mas-eval-harness[pandas]"'
        raise SetupError("to_pandas() needs the package pandas", hint=hint) from None
    if rows in ("episodes", "turns"):
        columns = run.tidy.episode_columns if rows == "episodes" else run.tidy.turn_columns
        data = run.episodes() if rows == "episodes" else run.turns()
        found = pandas.DataFrame(data, columns=[column.name for column in columns])
        types = {"number": "float64", "integer": "Int64"}
        return found.astype({column.name: types[column.kind] for column in columns if column.kind in types})
    if rows != "results":
        raise ValueError(f'to_pandas() gives "results", "episodes" or "turns", not {rows!r}')
    flat = []
    for row in run.rows:
        plain = {k: v for k, v in row.items() if k != "labels"}
        # A label may be called like a column of every row (n): it then becomes label_n.
        labels = {f"label_{k}" if k in plain and plain[k] != v else k: v for k, v in row["labels"].items()}
        flat.append({**labels, **plain})
    return pandas.DataFrame(flat)
