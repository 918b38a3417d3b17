"""lm-eval's tasks in YAML as specs of the task `dataset_qa`, and what such a spec cannot say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.api.errors import Place, PluginError
from harness.extensions.lm_eval.index import entries, unknown

from ._group import GroupConversion
from ._source import Entry, file_of, lookup, read
from ._task import ITSELF, Conversion, Note, TaskConversion

__all__ = ["Conversion", "Note", "convert"]


def convert(name: str, include_path: Sequence[Path] = ()) -> Conversion:
    """The spec of a task, a group or a tag.

    Args:
        name: as lm-eval knows it (this needs the package), or a YAML file.
        include_path: folders with more tasks.

    Raises:
        PluginError: for an unknown name, and a task in Python.
        DataError: for YAML that cannot be read.
        SetupError: if a name is given without the package.
    """
    file = Path(name).expanduser()
    if file.suffix in (".yaml", ".yml") and file.is_file():
        folders = [*include_path, file.parent]
        keys = read(file)
        if not isinstance(lookup(keys, "task"), list):
            return TaskConversion(keys).spec(str(lookup(keys, "task") or file.stem))
        known = entries(folders, _named_in(lookup(keys, "task")))
        return GroupConversion(known).spec(str(lookup(keys, "group") or file.stem), keys)
    known = entries(include_path, [name])
    if name not in known:
        raise unknown(name, known)
    entry = known[name]
    if entry.kind == "python":
        raise PluginError(
            f"{name} is written in Python", hint=f"Nothing of it is YAML: {ITSELF.replace('NAME', name)}."
        )
    if entry.kind == "task":
        return TaskConversion(read(file_of(entry))).spec(name)
    keys = read(file_of(entry)) if entry.kind == "group" else {"task": Entry(list(entry.members), Place(name))}
    return GroupConversion(known).spec(name, keys)


def _named_in(members: Sequence[Any]) -> list[str]:
    names = [member if isinstance(member, str) else member.get("task") or member.get("group") for member in members]
    return [name for name in names if isinstance(name, str)]
