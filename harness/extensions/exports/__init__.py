"""Finished runs for other tools: tables, Inspect logs, lm-eval's results, Hugging Face data sets, Weights & Biases."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.api.errors import DataError, near
from harness.evaluation.run import Run
from harness.plugins.manifests import offers

from . import hub
from ._output import in_place, output
from .form import ExportForm


@dataclass(frozen=True)
class ExportResult:
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
    **options: Any,
) -> ExportResult:
    """Write a finished run in the form of another tool.

    Args:
        run: the run.
        to: the name of a form.
        folder: where to; None for `export/<to>` in the run's folder. It may hold other things.
        overwrite: replace files that are there; with `repo` also add a commit to a data set that is there.
        repo: for "hub": upload it as this data set, `user/name`. Without `folder` no files stay here then.
        public: whether everyone may read a data set that is created.
        options: what only some forms take (`ExportForm.takes`), `runs` among them: further runs in the same files;
            None and () as if it were not there.

    Raises:
        DataError: there is no such form, it takes no such option, the journal is damaged, files are there, or the hub
            refuses the upload.
        SetupError: a package or a token is missing.
        StorageError: writing failed; then nothing has changed.
    """
    forms = offers("exports")
    if to not in forms:
        raise DataError(f"no form {to!r} to export to. {near(to, forms)}")
    form = forms[to].load_instance(ExportForm)
    given = {name: value for name, value in options.items() if value not in (None, (), [])}
    if foreign := [name for name in given if name not in form.takes]:
        if foreign == ["runs"]:
            raise DataError(f"the form {to!r} takes one run, found {1 + len(given['runs'])}")
        raise DataError(f"--{foreign[0]} is not for the form {to!r}")
    if repo is not None and to != "hub":
        raise DataError(f"a repo is for the form 'hub', not for {to!r}")
    if public and repo is None:
        raise DataError("public is for a data set that is uploaded", hint="Name it: --repo user/name.")
    if repo is not None:
        hub.check_name(repo)
    if repo is not None and folder is None:
        with tempfile.TemporaryDirectory(prefix="harness-hub-") as temporary:
            done = export(run, to, temporary)
            return ExportResult((), done.summary, hub.upload(Path(temporary), repo, public=public, overwrite=overwrite))
    folder = run.folder / "export" / to if folder is None else Path(folder)
    if form.in_place:
        with in_place(folder, form.files(run, **given)[0], overwrite) as place:
            summary = form.write(run, place, **given)
        return ExportResult((place,), summary)
    with output(folder, form.files(run, **given), overwrite) as target:
        summary = form.write(run, target.parts, **given)
        address = None if repo is None else hub.upload(target.parts, repo, public=public, overwrite=overwrite)
    return ExportResult(tuple(target.files), summary, address)
