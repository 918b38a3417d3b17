"""Plugins of projects under private module names; those of a project elsewhere as they were approved, file by file."""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from harness import approvals
from harness.storage.plugin_errors import MOUNT


class _Approved(importlib.machinery.SourceFileLoader):
    """Imports a file as it was approved: what is read once is what is checked and what runs, and no kept bytecode."""

    def get_code(self, fullname: str) -> types.CodeType:
        code: types.CodeType = self.source_to_code(approvals.source(Path(self.path), "a plugin"), self.path)
        return code


class _Elsewhere:
    """Finds modules of projects that lie elsewhere.

    Attributes:
        mounts: under which names they are mounted.
    """

    mounts: ClassVar[set[str]] = set()

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """As Python finds it; its source is imported as it was approved, and what has none not at all."""
        if fullname.partition(".")[0] not in cls.mounts:
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


def mount(root: Path, elsewhere: bool = False) -> str:
    """Make everything below `root` importable under a private name, without touching `sys.path`."""
    name = f"{MOUNT}{hashlib.sha256(str(root).encode()).hexdigest()[:12]}"
    if _Elsewhere not in sys.meta_path:
        sys.meta_path.insert(0, _Elsewhere)
    (_Elsewhere.mounts.add if elsewhere else _Elsewhere.mounts.discard)(name)
    if name not in sys.modules:
        module = types.ModuleType(name, f"The harness project at {root}.")
        module.__path__ = [str(root)]
        sys.modules[name] = module
    return name
