"""The code that a run uses: its plugins and what they import from their project, as hashes of files.

Results depend on it as they depend on a prompt. Tasks and metrics decide the numbers, which `harness score` can compute
again. Protocols, channels, policies and the project's engines decide what is played. Files of `harness` itself are not
listed: its version stands for them (run.json, `versions`).
"""

from __future__ import annotations

import ast
import functools
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from harness.api.plugin import MOUNT
from harness.config.plan import Plan
from harness.plugins.approvals import DIGEST
from harness.plugins.manifests import of_third_parties

Hashes = dict[str, str]
"""File, relative to its project → SHA-256 of its content, as hexadecimal digits."""
_GIT_SECONDS = 5.0
"""Seconds that git may take."""


@dataclass(frozen=True)
class _Source:
    root: Path
    path: str
    digest: str
    imports: tuple[str, ...]


def code(plan: Plan) -> dict[str, Hashes]:
    """{"play": …, "task": …, "metrics": …}: the files of each part; one that several parts import is in each of them.

    The same installation gives the same, wherever its files lie. Where two projects have a file of the same name, that
    of the later one in the lineage has the project's name before it: `parent:registry/tasks/x.py`.
    """
    played: list[object] = [*plan.engines.values()]
    for condition in plan.conditions:
        played.append(condition.protocol)
        played += [group.policy() for group in condition.groups if group.policy is not None]
    parts: dict[str, list[object]] = {
        "play": played,
        "task": [condition.task for condition in plan.conditions],
        # Numbers that come afterwards are not work of their metric's code.
        "metrics": [metric for metric in plan.metrics.values() if metric.measured_by is None],
    }
    names = {project.root: project.name for project in plan.project.lineage()}
    read = functools.cache(_source)
    hashes = {part: _hashes_by_name(_closure(_modules(plugins), read), names) for part, plugins in parts.items()}
    hashes["play"] |= _programs(plan)
    if not of_third_parties():
        return hashes
    from harness.runtime import used_extensions

    # An extension may have to do with all: its keys change specs, and its tables have numbers of their own.
    others = used_extensions.files(plan)
    return {part: {**one, **others} for part, one in hashes.items()}


def _programs(plan: Plan) -> Hashes:
    """The files of programs that engines run."""
    files = [file for engine in plan.engines.values() for file in engine.files()]
    here = Path.cwd()
    named = {str(file.relative_to(here)) if file.is_relative_to(here) else file.name: file for file in files}
    return {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in named.items()}


def reader_modules() -> dict[Path, bytes]:
    """File → code of what reads replies: what the forms share, and every module of engines and extensions, in whatever
    folder, that has to do with a form (`Reply`) or uses the forms of `harness.replies`."""
    package = Path(__file__).resolve().parent.parent
    shared = {file: file.read_bytes() for file in sorted((package / "replies").glob("*.py"))}
    others = {
        file: file.read_bytes() for room in ("engines", "extensions") for file in sorted((package / room).rglob("*.py"))
    }
    return shared | {file: code for file, code in others.items() if b"Reply" in code or b"harness.replies" in code}


@functools.cache
def readers() -> str:
    """A digest of the code of harness that reads replies (`reader_modules`)."""
    digest = hashlib.sha256()
    for code in reader_modules().values():
        digest.update(hashlib.sha256(code).digest())
    return digest.hexdigest()


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The files that are not the same: other ones, new ones, and those that are gone, in order of their names."""
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))


def changed_files(before: Mapping[str, Hashes], now: Mapping[str, Hashes], parts: Iterable[str]) -> set[str]:
    """The files of these parts of a run's `code` that are other ones in another `code`, that of now.

    What is imported only now, or only then, is left out: engines are not loaded to read a run.
    """
    files = set[str]()
    for part in parts:
        then = before.get(part) or {}
        files.update(name for name in changed(then, now[part]) if name in then and name in now[part])
    return files


def commit(root: Path) -> dict[str, Any] | None:
    """{"commit": its name, "dirty": whether a file that git knows was changed since}; None outside of a repository.

    A project that is merely installed below another repository is not in it.
    """
    if not any((folder / ".git").exists() for folder in (root, *root.parents)):
        return None
    if _git(root, "ls-files", "--error-unmatch", "harness.yaml") is None:
        return None
    status = _git(root, "status", "--porcelain=v2", "--branch", "--untracked-files=no")
    if status is None:
        return None
    lines = status.splitlines()
    named = [line.split()[2] for line in lines if line.startswith("# branch.oid ")]
    if not named or named[0] == "(initial)":
        return None
    return {"commit": named[0], "dirty": any(not line.startswith("#") for line in lines)}


def _git(root: Path, *arguments: str) -> str | None:
    # fsmonitor is a program that the repository's own configuration names.
    command = ["git", "-c", "core.fsmonitor=false", *arguments]
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, timeout=_GIT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def _hashes_by_name(sources: Iterable[_Source], names: Mapping[Path, str]) -> Hashes:
    order = {root: place for place, root in enumerate(names)}
    hashes: Hashes = {}
    for source in sorted(sources, key=lambda source: (order.get(source.root, len(order)), source.path)):
        if hashes.setdefault(source.path, source.digest) != source.digest:
            hashes[f"{names.get(source.root, source.root.name)}:{source.path}"] = source.digest
    return hashes


def _modules(plugins: Iterable[object]) -> set[str]:
    """Names of the modules in which these plugins, and those they hold, are defined."""
    modules: set[str] = set()
    visited: set[int] = set()
    waiting = list(plugins)
    while waiting:
        value = waiting.pop()
        if id(value) in visited:
            continue
        visited.add(id(value))
        if isinstance(value, Mapping):
            waiting += value.values()
        elif isinstance(value, list | tuple | set | frozenset):
            waiting += value
        elif type(value).__module__.startswith(MOUNT):
            modules.add(type(value).__module__)
            if is_dataclass(value):
                waiting += [getattr(value, field.name, None) for field in fields(value)]
    return modules


def _closure(modules: Iterable[str], read: Callable[[str], _Source | None]) -> Iterator[_Source]:
    """The sources of modules and of all that they import from their project, each once."""
    visited: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in visited:
            visited.add(name)
            if (source := read(name)) is not None:
                yield source
                waiting += source.imports


def _source(module: str) -> _Source | None:
    mount, _, below = module.partition(".")
    root = Path(next(iter(getattr(sys.modules.get(mount), "__path__", ())), ""))
    path = below.replace(".", "/")
    for name in (f"{path}.py", f"{path}/__init__.py"):
        if path and (root / name).is_file():
            content = (root / name).read_bytes()
            package = module if name.endswith("__init__.py") else module.rpartition(".")[0]
            # What runs is what was imported, whatever the file holds by now.
            digest = getattr(sys.modules.get(module), DIGEST, None) or hashlib.sha256(content).hexdigest()
            return _Source(root, name, digest, _imports(content, package) if b"from ." in content else ())
    return None


@functools.lru_cache(maxsize=512)  # a process may begin many runs
def _imports(content: bytes, package: str) -> tuple[str, ...]:
    """What a file may import relative to itself: modules, and names that may be modules."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):  # what runs has imported other files than this one
        return ()
    imports: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*above, *filter(None, [node.module])])
            imports += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return tuple(imports)
