"""An export: `harness export RUN --to echo -o FOLDER` writes `echo.txt`."""

from __future__ import annotations

from pathlib import Path

from harness import Run
from harness.extensions.exports.form import ExportForm


def _files(run: Run) -> tuple[str, ...]:
    return ("echo.txt",)


def _write(run: Run, folder: Path) -> str:
    (folder / "echo.txt").write_text(f"{run.spec.name}\n" * len(run.scores), "utf-8")
    return f"{len(run.scores)} echoes"


SCORE_SHEET = ExportForm(_files, _write)
