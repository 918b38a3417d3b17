"""What loading tasks of lm-eval would run: Python files that their YAML names, and its templates, in no sandbox.

The package's own tasks, and those of the user's project, need no approval; others do.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from harness.plugins import approvals
from harness.plugins.needed_approval import NeededApproval

from . import _package, task_index
from ._yaml_files import references

_FUNCTION, _MAX_NODES = "!function", 100_000
_MAX_FILE_BYTES = 1 << 20
"""Bytes of a YAML file of a task; a larger one is not looked into, and approved as a whole."""


def needed(names: Iterable[str], known: Mapping[str, task_index.TaskEntry]) -> list[NeededApproval]:
    """The files of others that loading tasks would run: their YAML (for its templates), and the Python that it names.

    Args:
        names: of tasks, groups and tags in `known`, or YAML files.
        known: the index.
    """
    return [
        NeededApproval.of_file(file, file.read_bytes(), why)
        for file, why in _files(names, known).items()
        if file.is_file() and not _is_own(file)
    ]


def _is_own(file: Path) -> bool:
    return approvals.is_own(file, _package.folder().resolve())


def _files(names: Iterable[str], known: Mapping[str, task_index.TaskEntry]) -> dict[Path, str]:
    """Every file that is not the user's own → what it is for."""
    found: dict[Path, str] = {}
    waiting, visited = list(names), set[str]()
    while waiting:
        name = waiting.pop()
        if name in visited:
            continue
        visited.add(name)
        entry = known.get(name)
        waiting += entry.members if entry is not None and entry.kind in ("group", "tag") else ()
        file = entry.path if entry is not None else Path(name)
        if file is not None and file.suffix in (".yaml", ".yml") and file.is_file():
            waiting += _look_into(file.resolve(), found)
    return found


def _look_into(file: Path, found: dict[Path, str]) -> tuple[str, ...]:
    """Add a YAML file, the files that it includes and the Python files that they name; returns the names in its
    list."""
    if file in found or _is_own(file) or not file.is_file():
        return ()
    found[file] = "templates of a task of lm-eval"
    with file.open("rb") as stream:
        text = stream.read(_MAX_FILE_BYTES + 1)
    try:
        root = yaml.compose(text, yaml.SafeLoader) if len(text) <= _MAX_FILE_BYTES else None
    except (yaml.YAMLError, ValueError, RecursionError):  # the package says what is wrong with it
        root = None
    names: tuple[str, ...] = ()
    for node in _nodes(root):
        if node.tag == _FUNCTION and isinstance(node, yaml.ScalarNode):
            module = node.value.rpartition(".")[0].replace(".", "/")
            python = (file.parent / f"{module}.py").resolve()
            if module and python.is_file():
                found.setdefault(python, "functions of a task of lm-eval")
    for key, value in root.value if isinstance(root, yaml.MappingNode) else ():
        plain = _plain(value)
        if key.value == "include":
            for included in plain if isinstance(plain, list) else [plain]:
                names += _look_into((file.parent / str(included)).expanduser().resolve(), found)
        elif key.value == "task" and isinstance(plain, list):
            names += references({"task": plain})
    return names


def _nodes(root: yaml.Node | None) -> Iterator[yaml.Node]:
    """Every node once, whatever refers to it."""
    waiting, visited = [root] if root is not None else [], set[int]()
    while waiting and len(visited) < _MAX_NODES:
        node = waiting.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        yield node
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
        elif isinstance(node, yaml.MappingNode):
            waiting += [part for pair in node.value for part in pair]


def _plain(node: yaml.Node, deepest: int = 20) -> Any:
    """A node's texts, lists and mappings."""
    if isinstance(node, yaml.SequenceNode) and deepest:
        return [_plain(item, deepest - 1) for item in node.value]
    if isinstance(node, yaml.MappingNode) and deepest:
        return {str(key.value): _plain(value, deepest - 1) for key, value in node.value}
    return str(node.value) if isinstance(node, yaml.ScalarNode) else ""


@contextlib.contextmanager
def as_approved() -> Iterator[None]:
    """Let the package import only approved Python files of others. Each file is read once, so that the checked code is
    the code that runs, and no cached bytecode is used. The import raises `NotApprovedError` for other files."""
    from lm_eval.tasks import _yaml_loader

    usual = _yaml_loader._load_module_with_cache

    def load(path: Path) -> Any:
        if _is_own(path):
            return usual(path)
        content = approvals.source(path, "functions of a task of lm-eval")
        name = str(path.with_suffix(""))
        module = types.ModuleType(name)
        module.__file__, module.__mtime__ = str(path), path.stat().st_mtime_ns  # type: ignore[attr-defined]
        exec(compile(content, str(path), "exec", dont_inherit=True), vars(module))
        sys.modules[name] = module
        return module

    _yaml_loader._load_module_with_cache = load
    try:
        yield
    finally:
        _yaml_loader._load_module_with_cache = usual
