"""`harness new`: a project of your own that works at once, and a new task in YAML in it."""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path

import yaml

from harness.api.errors import DataError, near
from harness.cli.usage import Parser
from harness.config.project import find
from harness.plugins.approvals import MARKER
from harness.plugins.extension import Offer
from harness.plugins.lookup import find_offer
from harness.plugins.manifests import offers
from harness.plugins.missing_extensions import bringer

PROJECT = "project"
"""The starter of a whole project. The others are kinds of tasks: `__NAME__` in names and texts of their files means the
task's name."""
SCHEMA = "spec.schema.json"
"""Beside `harness.yaml`: where the specs of a new project look for it."""
COMMANDS = ("validate", "show --case 0 --spec", "eval --spec")
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def options(command: Parser) -> None:
    """The options of `harness new`."""
    command.add_argument("names", nargs="+", metavar="FOLDER", help="a new or an empty folder; or: task NAME")
    kinds_of_tasks = ", ".join(sorted(offers("starters").keys() - {PROJECT}))
    command.add_argument("--kind", metavar="KIND", help=f"kind of the task: {kinds_of_tasks}")


def new(options: argparse.Namespace) -> int:
    """Copy the starter of a project or of a task, and say what to do next."""
    if options.names[0] == "task":
        return _task(options.names[1:], options.kind)
    if len(options.names) > 1 or options.kind:
        raise DataError(
            f"harness new takes one folder, found {' '.join(options.names)}",
            hint="A task in the project here: harness new task NAME --kind network.",
        )
    return _project(Path(options.names[0]))


def _project(folder: Path) -> int:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(f"{folder} exists and is not empty", hint="Choose a folder that does not exist yet.")
    starter = _starter(find_offer("starters", PROJECT, "a new project"))
    try:
        shutil.copytree(starter, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        _name(folder)
        _describe(folder)
    except OSError as error:
        raise DataError(f"cannot write {folder}: {error.strerror or error}") from None
    for file in sorted(p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
        print(f"  {file}")
    print(f"\nTry it:\n  cd {folder}\n  harness validate\n  harness eval --spec specs/meeting.yaml")
    return 0


def _name(folder: Path) -> None:
    """Call the new project after its folder, whatever that is called."""
    name = folder.resolve().name or "my_project"
    entry = yaml.safe_dump({"name": name}, allow_unicode=True, width=10_000).strip()
    for file, there, here in ((MARKER, "name: __NAME__", entry), ("README.md", "__NAME__", name)):
        text = (folder / file).read_text("utf-8")
        (folder / file).write_text(text.replace(there, here), "utf-8")


def _starter(offer: Offer) -> Path:
    """The folder to copy."""
    return offer.extension.file.parent / str(offer.value)


def _describe(root: Path) -> None:
    """Write what the first line of the specs refers to, with the plugins as they are: editors complete and check it."""
    from harness.config.editor_schema import schema_text

    (root / SCHEMA).write_text(schema_text(find(root)) + "\n", "utf-8")


def _task(names: list[str], kind: str | None) -> int:
    kinds = sorted(offers("starters").keys() - {PROJECT})
    name, count = " ".join(names), len(names)
    if kind not in kinds:
        found = "no --kind" if kind is None else f"--kind {kind}"
        hint = bringer(kind or "", "starters") or near(kind or "", kinds)
        raise DataError(f"a new task needs a kind, found {found}", hint=hint)
    if count != 1 or not _NAME.fullmatch(name):
        hint = "For example: harness new task seating --kind network."
        raise DataError(f"a task's name is one word of small letters, digits and _, found {name!r}", hint=hint)
    root = next((folder for folder in (Path.cwd(), *Path.cwd().parents) if (folder / MARKER).is_file()), None)
    if root is None:
        hint = "Start a project first: harness new my_project; cd my_project."
        raise DataError(f"there is no {MARKER} here or above", hint=hint)
    starter = _starter(offers("starters")[str(kind)])
    texts = {
        root / str(file.relative_to(starter)).replace("__NAME__", name): file.read_text("utf-8")
        for file in sorted(starter.rglob("*"))
        if file.is_file() and "__pycache__" not in file.parts  # pip compiles what it installs
    }
    taken = [path for path in texts if path.exists()]
    if taken:
        raise DataError(f"{taken[0]} exists already", hint="Choose another name.")
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("__NAME__", name), "utf-8")
        _describe(root)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from None
    here = [path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path for path in texts]
    spec = next(path for path in here if path.name == f"{name}.yaml" and path.parent.name == "specs")
    print("\n".join(f"  {path}" for path in here))
    print("\nTry it:", *(f"harness {command} {spec}" for command in COMMANDS), sep="\n  ")
    return 0
