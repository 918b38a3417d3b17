"""Plugins of a project that lies elsewhere: imported as they were approved, file by file."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
import types
from collections.abc import Container, Iterator, Sequence
from pathlib import Path

from harness.plugins import approvals
from harness.plugins.needed_approval import NeededApproval


class _Approved(importlib.machinery.SourceFileLoader):
    """Imports a file as it was approved: what is read once is what is checked and what runs, and no kept bytecode."""

    def get_code(self, fullname: str) -> types.CodeType:
        code: types.CodeType = self.source_to_code(approvals.source(Path(self.path), "a plugin"), self.path)
        return code


class _Elsewhere:
    """Finds modules of projects that lie elsewhere, whose private names these are."""

    def __init__(self, names: Container[str]) -> None:
        self.names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """As Python finds it; its source is imported as it was approved, and what has none not at all."""
        if fullname.partition(".")[0] not in self.names:
            return None
        found = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if found is None or found.loader is None or found.origin is None:  # a folder
            return found
        if not isinstance(found.loader, importlib.machinery.SourceFileLoader):
            raise ImportError(f"{found.origin}: of a project elsewhere only Python source is imported", name=fullname)
        return importlib.util.spec_from_file_location(
            fullname,
            found.origin,
            loader=_Approved(fullname, found.origin),
            submodule_search_locations=found.submodule_search_locations,
        )


def admit(root: Path, names: Container[str]) -> None:
    """Let plugins of a project elsewhere be imported as they are approved; `names`: those of all such projects.

    Raises `NotApprovedError`, which names all of them that are not approved.
    """
    approvals.require(plugins_of(root))
    if not any(isinstance(finder, _Elsewhere) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Elsewhere(names))


def plugins_of(root: Path) -> Iterator[NeededApproval]:
    """The files of code of a project, those behind links included."""
    entered = set[Path]()
    for home in (root / "registry", root / "metrics"):
        for folder, folders, names in os.walk(home, followlinks=True):
            entered.add(Path(folder).resolve())
            folders[:] = sorted(name for name in folders if Path(folder, name).resolve() not in entered)
            for file in (Path(folder, name) for name in sorted(names) if name.endswith(".py")):
                if file.is_file():
                    yield NeededApproval.of_file(file, file.read_bytes(), "a plugin")
