"""Finished runs for other tools: tidy tables, Inspect logs, Hugging Face data sets, Weights & Biases."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.errors import DataError, near
from harness.evaluation import Run

from . import inspect_log
from ._output import output
from .tables import TABLES, WRITERS, write_tables

FORMS: Final = ("parquet", "csv", "jsonl", "inspect")


@dataclass(frozen=True)
class Exported:
    """What an export wrote.

    Attributes:
        files: the files and folders.
        summary: what is in them, in words.
    """

    files: tuple[Path, ...]
    summary: str


def export(run: Run, to: str, folder: Path | str | None = None, *, overwrite: bool = False) -> Exported:
    """Write a finished run in the form of another tool.

    Args:
        run: the run.
        to: one of `FORMS`.
        folder: where to; None for `export/<to>` in the run's folder. It may hold other things.
        overwrite: replace files that are there.

    Raises:
        DataError: there is no such form, the journal is damaged, or files are there.
        SetupError: a package is missing.
        StorageError: writing failed; then nothing has changed.
    """
    if to not in FORMS:
        raise DataError(f"no form {to!r} to export to. {near(to, FORMS)}")
    folder = run.folder / "export" / to if folder is None else Path(folder)
    if to == "inspect":
        name = inspect_log.log_name(run)
        with output(folder, (name,), overwrite) as target:
            episodes, calls = inspect_log.write_log(run, target.parts / name)
        return Exported(tuple(target.files), f"{episodes:,} samples, {calls:,} calls of models")
    with output(folder, tuple(f"{name}.{WRITERS[to].suffix}" for name in TABLES), overwrite) as target:
        episodes, turns = write_tables(run, to, target.parts)
    return Exported(tuple(target.files), f"{episodes:,} episodes, {turns:,} turns")
