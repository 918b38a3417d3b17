"""`harness new`: a project of one's own that works at once."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from harness.errors import DataError

SCAFFOLD = Path(__file__).parent.parent / "scaffold"


def new(options: argparse.Namespace) -> int:
    """Copy the scaffold and say what to do next."""
    folder = Path(options.folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(f"{folder} exists and is not empty", hint="Choose a folder that does not exist yet.")
    try:
        shutil.copytree(SCAFFOLD, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    except OSError as error:
        raise DataError(f"cannot write {folder}: {error.strerror or error}") from None
    for file in sorted(p for p in folder.rglob("*") if p.is_file()):
        print(f"  {file}")
    print(f"\nTry it:\n  cd {folder}\n  harness validate\n  harness eval --spec specs/meeting.yaml")
    return 0
