"""Which tasks, groups and tags there are: lm-eval's own index, kept in the user's cache.

The package reads some 14,000 YAML files for it, which takes about 20 s; the kept one is read in a fraction of a second.
It counts as long as the package's version and every YAML file's size and time of change are the same. A task that is
asked for by its name does not wait for it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from harness.api.errors import DataError, HarnessError, PluginError
from harness.storage import write_atomically
from harness.storage.files import cache_folder

from . import _package
from ._yaml_files import defined, references, yaml_files

EntryKind = Literal["task", "python", "group", "tag"]
_FORM = 1
"""Of a kept index: another one's are made again."""
MIN_CACHED_FILES = 100
"""YAML files of a folder from which on its index is kept."""


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """A name that lm-eval knows.

    Attributes:
        name: as specs write it.
        kind: a task in YAML, one in Python, a group, or a tag.
        file: its YAML file; None for a tag.
        members: the tasks of a tag; the names that a group has in its list; the tags of a task.
        output: the task's `output_type`; "" if its own file, or one that it includes, does not say it.
        unsafe: whether its grading runs programs that models wrote, as its file says.
    """

    name: str
    kind: EntryKind
    file: str | None = None
    members: tuple[str, ...] = ()
    output: str = ""
    unsafe: bool = False

    @property
    def path(self) -> Path | None:
        """The YAML file."""
        return Path(self.file) if self.file is not None else None


def entries(include_path: Iterable[Path] = (), wanted: Iterable[str] | None = None) -> dict[str, TaskEntry]:
    """Every name of the package and of some folders; a later folder's names count before those of earlier ones.

    Args:
        include_path: the folders.
        wanted: names that are asked for. What else the package has may then be left out, so that it need not be read.

    Raises:
        SetupError: the package is missing or too old.
        DataError: there is no such folder.
    """
    own: dict[str, TaskEntry] = {}
    _package.version()
    for root in include_path:
        if not root.is_dir():
            hint = "Name one with tasks in YAML files."
            raise DataError(f"include_path: there is no folder {root}", hint=hint, at=("include_path",))
        own |= _of(root.resolve())
    lacking = _lacking(own, wanted) if wanted is not None else None
    if lacking == ():
        return own
    return _of_package(lacking) | own


def _lacking(known: Mapping[str, TaskEntry], wanted: Iterable[str]) -> tuple[str, ...]:
    """The names that are neither in `known` nor files: those asked for, and those that groups refer to."""
    names = [name for name in wanted if not name.endswith((".yaml", ".yml"))]
    names += [name for entry in known.values() if entry.kind == "group" for name in entry.members]
    return tuple(name for name in dict.fromkeys(names) if name not in known)


@functools.cache
def _of_package(wanted: tuple[str, ...] | None) -> dict[str, TaskEntry]:
    """The names of the package, or at least those `wanted`; read once a process."""
    return _of(_package.folder().resolve(), wanted)


def kept_file(root: Path) -> Path:
    """The file in the cache with the index of a folder."""
    name = hashlib.sha256(str(root).encode("utf-8", "backslashreplace")).hexdigest()[:16]
    return cache_folder() / f"lm_eval-{name}.json"


def _of(root: Path, wanted: Iterable[str] | None = None) -> dict[str, TaskEntry]:
    """The names below a folder: of a large one from the cache, if it is true, else from the package.

    Where the package would have to make a large index, and only some names are `wanted`, their files alone are read.
    """
    files = list(yaml_files(root))
    if len(files) < MIN_CACHED_FILES:
        return _build(root)
    stamp, file = stamp_of(files), kept_file(root)
    kept = _read(file, root, stamp)
    if kept is not None:
        return kept
    if wanted is not None and (few := _entries(defined(root, wanted))) is not None:
        return few
    fresh = _build(root)
    lines = {entry.name: _line(entry, root) for entry in fresh.values()}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, json.dumps({"stamp": stamp, "entries": lines}))
    except (OSError, HarnessError):
        pass  # it is made again next time
    return fresh


def stamp_of(files: Iterable[os.DirEntry[str]]) -> str:
    """What the index depends on: the package's version, and name, size and time of change of every YAML file."""
    sha = hashlib.sha256(f"{_FORM} {_package.version()}".encode())
    for entry in files:
        status = entry.stat()
        line = f"{entry.path}\0{status.st_size}\0{status.st_mtime_ns}\n"
        sha.update(line.encode("utf-8", "backslashreplace"))
    return sha.hexdigest()


def _read(file: Path, root: Path, stamp: str) -> dict[str, TaskEntry] | None:
    """The kept index; None if there is none, or it is of other files or damaged."""
    try:
        data = json.loads(file.read_bytes())
        if data["stamp"] != stamp:
            return None
        return {name: _entry(name, line, root) for name, line in data["entries"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _line(entry: TaskEntry, root: Path) -> list[Any]:
    file = entry.file.removeprefix(f"{root}/") if entry.file is not None else None
    return [entry.kind, file, entry.members, entry.output, entry.unsafe]


def _entry(name: str, line: Sequence[Any], root: Path) -> TaskEntry:
    """One line of a kept index."""
    kind, below, members, output, unsafe = line
    return TaskEntry(name, kind, None if below is None else f"{root}/{below}", tuple(members), output, unsafe)


def _build(root: Path) -> dict[str, TaskEntry]:
    """The package's own index of a folder."""
    if root == _package.folder().resolve():
        print("reading lm-eval's tasks: about 20 s, once for each version", file=sys.stderr)
    from lm_eval.tasks._index import TaskIndex

    with _package.quietly():
        return _entries(TaskIndex.build([root])) or {}


def _entries(index: Mapping[str, Any] | None) -> dict[str, TaskEntry] | None:
    """The package's entries as ours."""
    if index is None:
        return None
    kinds: Mapping[str, EntryKind] = {"TASK": "task", "PY_TASK": "python", "GROUP": "group", "TAG": "tag"}
    return {
        str(name): TaskEntry(
            str(name),
            kinds[entry.kind.name],
            str(entry.yaml_path) if entry.yaml_path is not None else None,
            references(entry.cfg) if entry.kind.name == "GROUP" else tuple(sorted(map(str, entry.tags))),
            str((entry.cfg or {}).get("output_type") or ""),
            bool((entry.cfg or {}).get("unsafe_code")),
        )
        for name, entry in index.items()
        if entry.kind.name in kinds
    }


def listed(word: str, include_path: Iterable[Path] = ()) -> list[tuple[str, str, str]]:
    """(name, what it is, file or number of tasks) of every name with `word` in it, in any case.

    Raises:
        SetupError, DataError: as `entries`; also if no name has it.
    """
    known, home = entries(include_path), f"{_package.folder().resolve()}/"
    names = [name for name in sorted(known) if word.casefold() in name.casefold()]
    if not names:
        raise DataError(f"no name of lm-eval has {word!r} in it", hint=f"There are {len(known):,} names.")
    lines = []
    for entry in map(known.__getitem__, names):
        what = entry.output or "generate_until" if entry.kind == "task" else entry.kind
        what += ", programs" if entry.unsafe else ""
        lines.append((entry.name, what, (entry.file or f"{len(entry.members)} tasks").removeprefix(home)))
    return lines


def unknown(name: str, known: Iterable[str]) -> PluginError:
    """The error for a name that is neither in the index nor a file."""
    import difflib

    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=4, cutoff=0.6)
    close += [other for other in names if name in other and other not in close][: 4 - len(close)]
    near = f"Did you mean {' or '.join(close)}? " if close else ""
    hint = f"{near}`harness list tasks --lm_eval {name[:20]}` searches the {len(names):,} names."
    return PluginError(
        f"lm-eval has no task, group or tag {name!r}, and there is no such file", hint=hint, at=("task",)
    )
