"""The YAML files of a folder: all of them, and those that define a few names, found without parsing the rest."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

_NAME = re.compile(
    rb"^[\"']?(?:task|group)[\"']?[ \t]*:[ \t]*[\"']?([^\s\"'#\[\]{}]+)[\"']?[ \t]*(?:#.*)?\r?$", re.MULTILINE
)


def yaml_files(root: Path) -> Iterator[os.DirEntry[str]]:
    """Every YAML file below a folder, in the same order each time. Links to folders are not followed."""
    folders = [str(root)]
    while folders:
        with os.scandir(folders.pop()) as listed:
            for entry in sorted(listed, key=lambda entry: entry.name):
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.name.endswith(".yaml"):
                    yield entry


def defined(root: Path, wanted: Iterable[str]) -> dict[str, Any] | None:
    """The package's entries of a few names and of all that their groups refer to.

    Returns:
        None if one of them is a tag, a pattern, or not in exactly one file: then only the whole index can tell.
    """
    places: dict[str, list[Path]] = {}
    for entry in yaml_files(root):
        for name in _NAME.findall(Path(entry.path).read_bytes()):
            places.setdefault(name.decode("utf-8", "replace"), []).append(Path(entry.path))
    waiting = [name for name in wanted if not name.endswith((".yaml", ".yml"))]
    if any(len(places.get(name, ())) != 1 for name in waiting):
        return None
    from lm_eval.tasks._index import TaskIndex
    from lm_eval.tasks._yaml_loader import load_yaml

    entries: dict[str, Any] = {}
    while waiting:
        name = waiting.pop()
        if name in entries:
            continue
        if len(places.get(name, ())) != 1:
            return None
        [file] = places[name]
        parsed: dict[str, Any] = {}
        TaskIndex.process_cfg(load_yaml(file, resolve_func=False), file, parsed)
        if name not in parsed:
            return None
        entries[name] = parsed[name]
        if parsed[name].kind.name == "GROUP":
            waiting += references(parsed[name].cfg)
    return entries


def references(group: Mapping[str, Any]) -> tuple[str, ...]:
    """The names in a group's list, and in those of groups that are written in it."""
    names: list[str] = []
    listed = group.get("task")
    for item in listed if isinstance(listed, list) else [listed]:
        if isinstance(item, Mapping):
            names += references(item) if "task" in item else [str(item["group"])] if "group" in item else []
        elif item is not None:
            names.append(str(item))
    return tuple(names)
