"""`harness new package NAME`: an installable package with a benchmark."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from harness import __version__
from harness.cli.new import copy, task_starter

KIND: Final = "sharded"
"""The kind of task that a package begins with, where the user names none."""
_EDITORS: Final = "# yaml-language-server:"


def finish(folder: Path, options: argparse.Namespace) -> Iterator[str]:
    """Give the package its benchmark, a task of the kind that `options` names; yields what to try.

    Raises:
        DataError: there is no such kind.
    """
    name = folder.name
    module = name.replace("-", "_")
    plugins = folder / "src" / module / "plugins"
    for path in copy(task_starter(options.kind or KIND), plugins, module):
        text = path.read_text("utf-8")
        if text.startswith(_EDITORS):  # names a file that only projects have
            path.write_text(text.partition("\n")[2], "utf-8")
    project = folder / "pyproject.toml"
    needed = '"mas-eval-harness"'
    project.write_text(project.read_text("utf-8").replace(needed, f'"mas-eval-harness>={__version__}"'), "utf-8")
    yield "pip install -e . pytest"
    yield "pytest"
    yield f"harness certify {module}"
