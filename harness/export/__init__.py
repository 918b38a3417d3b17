"""Finished runs for other tools: tables, Inspect logs, lm-eval's results, Hugging Face data sets, Weights & Biases."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from harness.errors import DataError, near
from harness.results import Run

from . import hub, inspect_log, lm_eval, weights_and_biases
from ._output import in_place, output
from .tables import TABLES, WRITERS, write_tables

FORMS: Final = ("parquet", "csv", "jsonl", "inspect", "lm_eval", "hub", "wandb")


@dataclass(frozen=True)
class Exported:
    """What an export wrote.

    Attributes:
        files: the files and folders.
        summary: what is in them, in words.
        address: where it was uploaded to, if it was.
    """

    files: tuple[Path, ...]
    summary: str
    address: str | None = None


def export(
    run: Run,
    to: str,
    folder: Path | str | None = None,
    *,
    overwrite: bool = False,
    repo: str | None = None,
    public: bool = False,
) -> Exported:
    """Write a finished run in the form of another tool.

    Args:
        run: the run.
        to: one of `FORMS`.
        folder: where to; None for `export/<to>` in the run's folder. It may hold other things.
        overwrite: replace files that are there; with `repo` also add a commit to a data set that is there.
        repo: for "hub": upload it as this data set, `user/name`. Without `folder` no files stay here then.
        public: whether everyone may read a data set that is created.

    Raises:
        DataError: there is no such form, the journal is damaged, files are there, or the hub refuses the upload.
        SetupError: a package or a token is missing.
        StorageError: writing failed; then nothing has changed.
    """
    if to not in FORMS:
        raise DataError(f"no form {to!r} to export to. {near(to, FORMS)}")
    if repo is not None and to != "hub":
        raise DataError(f"a repo is for the form 'hub', not for {to!r}")
    if public and repo is None:
        raise DataError("public is for a data set that is uploaded", hint="Name it: --repo user/name.")
    if repo is not None:
        hub.check_name(repo)
    if repo is not None and folder is None:
        with tempfile.TemporaryDirectory(prefix="harness-hub-") as temporary:
            done = export(run, to, temporary)
            return Exported((), done.summary, hub.upload(Path(temporary), repo, public=public, overwrite=overwrite))
    folder = run.folder / "export" / to if folder is None else Path(folder)
    if to == "wandb":
        with in_place(folder, weights_and_biases.folder_name(run), overwrite) as place:
            summary = weights_and_biases.write_run(run, place)
        return Exported((place,), summary)
    with output(folder, _names(run, to), overwrite) as target:
        if to == "inspect":
            episodes, calls = inspect_log.write_log(run, target.parts / inspect_log.log_name(run))
            summary = f"{episodes:,} samples, {calls:,} calls of models"
        elif to == "lm_eval":
            tasks, samples = lm_eval.write_results(run, target.parts)
            summary = f"{tasks:,} {'task' if tasks == 1 else 'tasks'}, {samples:,} samples"
        else:
            write = hub.write_data_set if to == "hub" else partial(write_tables, form=to)
            episodes, turns = write(run, folder=target.parts)
            summary = f"{episodes:,} episodes, {turns:,} turns"
        address = None if repo is None else hub.upload(target.parts, repo, public=public, overwrite=overwrite)
    return Exported(tuple(target.files), summary, address)


def _names(run: Run, to: str) -> tuple[str, ...]:
    """What an export writes into its folder."""
    if to == "inspect":
        return (inspect_log.log_name(run),)
    if to == "hub":
        return hub.files_of(run)
    if to == "lm_eval":
        return lm_eval.files_of(run)
    return tuple(f"{name}.{WRITERS[to].suffix}" for name in TABLES)
