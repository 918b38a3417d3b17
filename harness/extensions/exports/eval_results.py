"""A run's headline as the Hugging Face hub lists it: `.eval_results/NAME.yaml` of a model's repository.

The format is that of https://huggingface.co/docs/hub/eval-results: the benchmark is a data set of the hub.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from harness.api.errors import DataError
from harness.api.printable import clean_name
from harness.config import yamls
from harness.evaluation.run import Run

from .form import ExportForm
from .hub import check_name
from .single_model import declared_headline, file_stem, one_model
from .texts import plain

FOLDER: Final = ".eval_results"
_TASK: Final = re.compile(r"[\w.%-]{1,100}", re.ASCII)


def entries(run: Run, dataset: str, task_id: str) -> list[dict[str, Any]]:
    """The entries of the file: one, the headline over all episodes, in the units of `results.json`.

    Raises:
        DataError: as `one_model` and `declared_headline`.
    """
    model, cell = one_model(run), declared_headline(run)
    interval = "" if cell.low is None or cell.high is None else f", 95 % interval {cell.low:.4g} to {cell.high:.4g}"
    version = (run.meta.get("versions") or {}).get("harness")
    notes = (
        f"{run.headline.name} of a group of agents that {model} plays: spec {run.spec.name} "
        f"{str(run.meta['spec_digest'])[:12]}, {cell.n} episodes{interval}; mas-eval-harness {version}"
    )
    entry = {
        "dataset": {"id": dataset, "task_id": task_id},
        "value": cell.value,
        "date": str(run.meta.get("start") or "")[:10],
        "notes": clean_name(notes),
    }
    return list(plain([{key: value for key, value in entry.items() if value != ""}]))


def _files(run: Run, **options: str) -> tuple[str, ...]:
    return (f"{FOLDER}/{file_stem(run.spec.name)}.yaml",)


def _write(run: Run, folder: Path, *, dataset: str | None = None, task_id: str | None = None) -> str:
    if dataset is None:
        hint = "Name the benchmark's data set: --dataset user/name, and --task_id if its eval.yaml has several."
        raise DataError("the hub lists results under a data set, and there is no --dataset", hint=hint)
    check_name(dataset, "--dataset")
    task = task_id or "default"
    if not _TASK.fullmatch(task):
        raise DataError(f"--task_id {clean_name(task):.100} is no name of a task", hint="See the data set's eval.yaml.")
    [file] = _files(run)
    made = entries(run, dataset, task)
    (folder / FOLDER).mkdir()
    (folder / file).write_text(yamls.dump(made), "utf-8")
    return f"the headline; copy {FOLDER}/ into the model's repository"


FORM: Final = ExportForm(_files, _write, takes=("dataset", "task_id"))
