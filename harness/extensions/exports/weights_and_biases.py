"""A run as an offline run of Weights & Biases: configuration, summary, tables, and an artifact with everything."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from harness.api.errors import DataError, SetupError
from harness.api.printable import clean_name
from harness.api.run_files import META, RESULTS, SPEC
from harness.evaluation.run import Run
from harness.report.provenance import ended_early, who_answered
from harness.tables.scores import measured

from ._headline import headline_cell
from .form import ExportForm
from .table_files import write_tables
from .texts import plain

MAX_ROWS: Final = 10_000
"""Rows of a table, for the page of a run. All of them are in the artifact."""
MAX_CELL_CHARS: Final = 1_000
"""Characters of a cell of such a table."""
_CONFIG: Final = ("run", "model", "spec_digest", "generation_kwargs", "versions", "policies_only", "uses_ground_truth")


def folder_name(run: Run) -> str:
    """The name of the folder that `write_run` fills, the same for the same run."""
    return f"{_name(str(run.meta['run']))}-{_id(run)}"


def write_run(run: Run, folder: Path) -> str:
    """Write the run into an empty folder; nothing is sent. `wandb sync` uploads it from there, and only from there.

    Args:
        run: a finished run.
        folder: an absolute path: the package notes down where the files of artifacts are.

    Returns:
        what is in it, in words.

    Raises:
        DataError: the journal is damaged, or the package fails.
        SetupError: the package is missing.
        OSError: a file cannot be written.
    """
    if importlib.util.find_spec("wandb") is None:
        hint = 'pip install "mas-eval-harness[wandb]"'
        raise SetupError("writing for Weights & Biases needs the package wandb", hint=hint)
    files = folder / "files"
    files.mkdir()
    episodes, turns = write_tables(run, "parquet", files)
    for name in (META, SPEC, RESULTS):
        (files / name).write_bytes((run.folder / name).read_bytes())
    _log(_document(run, folder, files), folder)
    (offline,) = folder.glob("wandb/offline-run-*")
    cut = f"; the table shows {MAX_ROWS:,} of the episodes" if episodes > MAX_ROWS else ""
    return f"{episodes:,} episodes, {turns:,} turns{cut}\nupload it with: wandb sync {shlex.quote(str(offline))}"


def _log(document: dict[str, Any], folder: Path) -> None:
    """Let the package write; raises `DataError` with what it says where it fails."""
    own = {f"WANDB_{name.upper()}_DIR": str(folder / name) for name in ("data", "cache", "config")}
    own |= {"WANDB_ERROR_REPORTING": "false", "WANDB_MODE": "offline"}
    done = subprocess.run(
        [sys.executable, "-P", str(Path(__file__).with_name("_wandb_child.py"))],
        input=json.dumps(document),
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="backslashreplace",
        check=False,
    )
    failures = [done.stderr.strip().rpartition("\n")[2]] if done.returncode else []
    for log in folder.glob("wandb/offline-run-*/logs/debug-internal.log"):
        with log.open(encoding="utf-8", errors="replace") as lines:
            failures += [line for line in lines if '"level":"ERROR","msg":"writer:' in line]
    if failures:
        raise DataError(f"wandb cannot write the run: {clean_name(failures[0].strip()):.300}")


def _document(run: Run, folder: Path, files: Path) -> dict[str, Any]:
    """What the run's page is to show, for `_wandb_child.main`."""
    config = {key: run.meta[key] for key in _CONFIG if key in run.meta}
    if run.metrics:
        config["headline"] = {"metric": run.headline.metric, "title": run.headline.table.title}
        config["headline"] |= {"missing": why} if (why := run.headline_missing) else {}
    config |= {"who_answered": who} if (who := [*who_answered(run.meta)]) else {}
    config |= {} if (enough := ended_early(run.meta)) is None else {"ended_early": enough}
    config["spec"] = (run.meta.get("identity") or {}).get("spec", {})
    fixed = ("condition", "metric", "value", "stderr", "n", "failed")
    rows = run.rows
    labels = list(dict.fromkeys(label for row in rows for label in row["labels"]))
    document: dict[str, Any] = plain(
        {
            "run": {
                "dir": str(folder),
                "project": _name(run.spec.name),
                "name": str(run.meta["run"]),
                "id": _id(run),
                "config": config,
            },
            "start": datetime.fromisoformat(str(run.meta["start"])).timestamp(),
            "summary": summary(run),
            "columns": [*fixed, *(f"label_{label}" for label in labels)],
            "results": [[*map(row.get, fixed), *map(row["labels"].get, labels)] for row in rows],
            "artifact": folder_name(run),
            "files": str(files),
            "most_rows": MAX_ROWS,
            "longest_cell": MAX_CELL_CHARS,
        }
    )
    return document


def summary(run: Run) -> dict[str, Any]:
    """The headline with its 95 % interval; every metric over all episodes, with its standard error and count."""
    summary: dict[str, Any] = {"episodes": len(run.scores), "failed": len(run.failed)}
    if (cell := headline_cell(run)) is not None:
        parts = {"headline": cell.value, "headline/n": cell.n, "headline/low": cell.low, "headline/high": cell.high}
        summary |= {key: value for key, value in parts.items() if value is not None}
    for name, metric in run.metrics.items():
        statistic = measured(metric, run.scores, name, run.cluster)
        if statistic.value is not None:
            parts = {name: statistic.value, f"{name}/stderr": statistic.stderr, f"{name}/n": statistic.n}
            summary |= {key: value for key, value in parts.items() if value is not None}
    return summary


def _name(text: str) -> str:
    """The text with the characters that names of projects and artifacts may have."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip("-.")[:100] or "run"


def _id(run: Run) -> str:
    facts = "\0".join(str(run.meta[key]) for key in ("run", "start", "spec_digest"))
    return hashlib.sha256(facts.encode("utf-8", "backslashreplace")).hexdigest()[:12]


FORM: Final = ExportForm(lambda run: (folder_name(run),), write_run, in_place=True)
