"""`harness new`: a project of your own that works at once, a new task in YAML in it, and other folders that extensions
start."""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
from collections.abc import Iterator
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
"""The starter of a whole project. The others are kinds of tasks, or folders whose entry says who finishes them:
`__NAME__` in names and texts of their files means the name that the user gives."""
SCHEMA = "spec.schema.json"
"""Beside `harness.yaml`: where the specs of a new project look for it."""
COMMANDS = ("validate", "show --case 0 --spec", "eval --spec")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_FOLDER = re.compile(r"[a-z][a-z0-9_-]{0,60}")


def options(command: Parser) -> None:
    """The options of `harness new`."""
    more = "".join(f", or {name} {_subject(offer) or 'NAME'}" for name, offer in _folders().items())
    command.add_argument("names", nargs="+", metavar="FOLDER", help=f"a new or an empty folder; or: task NAME{more}")
    command.add_argument("--kind", metavar="KIND", help=f"kind of the task: {', '.join(kinds())}")


def kinds() -> list[str]:
    """The kinds of tasks that `harness new task` starts."""
    return sorted(name for name, one in offers("starters").items() if name != PROJECT and isinstance(one.value, str))


def _folders() -> dict[str, Offer]:
    """Name → starter of a folder that is neither a project nor a task."""
    return {name: offer for name, offer in sorted(offers("starters").items()) if not isinstance(offer.value, str)}


def _subject(offer: Offer) -> str | None:
    """Of what the folder is, which the user names before it: SPEC; None: the folder is of nothing else."""
    of: str | None = offer.value.get("of")
    return of


def new(options: argparse.Namespace) -> int:
    """Copy the starter of a project or of a task, and say what to do next."""
    if options.names[0] == "task":
        return _task(options.names[1:], options.kind)
    if (offer := _folders().get(options.names[0])) is not None:
        return _folder(offer, options)
    if len(options.names) > 1 or options.kind:
        raise DataError(
            f"harness new takes one folder, found {' '.join(options.names)}",
            hint=near(options.names[0], ["task", *_folders()])
            or "A task in the project here: harness new task NAME --kind network.",
        )
    return _project(Path(options.names[0]))


def _project(folder: Path) -> int:
    _refuse_full(folder)
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
    return offer.extension.file.parent / str(offer.value if isinstance(offer.value, str) else offer.value["folder"])


def _folder(offer: Offer, options: argparse.Namespace) -> int:
    """Copy a starter into a new folder, and let its extension finish it. It comes to its place whole, or not at all."""
    names, of = options.names[1:], _subject(offer)
    if of is not None:  # the folder is called after it where it has no name of its own
        names = names[1:] or [Path(name).stem for name in names]
    folder = Path(names[0]) if len(names) == 1 else Path()
    name = folder.name
    if not _FOLDER.fullmatch(name):
        hint = f"For example: harness new {offer.name} {f'{of} ' if of else ''}meeting."
        message = f"the name of a new {offer.name} is one word of small letters, digits, _ and -"
        raise DataError(f"{message}, found {' '.join(names)!r:.100}", hint=hint)
    _refuse_full(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=folder.parent) as place:
            made = Path(place) / name
            copy(_starter(offer), made, name)
            lines = [*offer.load_function()(made, options)]
            made.rename(folder)
    except OSError as error:
        raise DataError(f"cannot write {folder}: {error.strerror or error}") from None
    for file in sorted(p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
        print(f"  {file}")
    print("\nTry it:", f"cd {folder}", *lines, sep="\n  ")
    return 0


def copy(starter: Path, root: Path, name: str) -> list[Path]:
    """Copy the files of a starter below `root`, with `__NAME__` as the name and `__MODULE__` as Python writes it;
    returns their paths.

    Raises:
        DataError: one of them is there. Nothing is copied then.
        OSError: a file cannot be written.
    """
    texts = dict(_texts(starter, root, name))
    if taken := [path for path in texts if path.exists()]:
        raise DataError(f"{taken[0]} exists already", hint="Choose another name.")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return [*texts]


def _texts(starter: Path, root: Path, name: str) -> Iterator[tuple[Path, str]]:
    def named(text: str) -> str:
        return text.replace("__NAME__", name).replace("__MODULE__", name.replace("-", "_"))

    for file in sorted(starter.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:  # pip compiles what it installs
            yield root / named(str(file.relative_to(starter))), named(file.read_text("utf-8"))


def _refuse_full(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(f"{folder} exists and is not empty", hint="Choose a folder that does not exist yet.")


def _describe(root: Path) -> None:
    """Write what the first line of the specs refers to, with the plugins as they are: editors complete and check it."""
    from harness.config.editor_schema import schema_text

    (root / SCHEMA).write_text(schema_text(find(root)) + "\n", "utf-8")


def task_starter(kind: str | None) -> Path:
    """The folder with the starter of a kind of task. Raises `DataError` if there is no such kind."""
    if kind not in kinds():
        found = "no --kind" if kind is None else f"--kind {kind}"
        hint = bringer(kind or "", "starters") or near(kind or "", kinds())
        raise DataError(f"a new task needs a kind, found {found}", hint=hint)
    return _starter(offers("starters")[str(kind)])


def _task(names: list[str], kind: str | None) -> int:
    name, count = " ".join(names), len(names)
    starter = task_starter(kind)
    if count != 1 or not _NAME.fullmatch(name):
        hint = "For example: harness new task seating --kind network."
        raise DataError(f"a task's name is one word of small letters, digits and _, found {name!r}", hint=hint)
    root = next((folder for folder in (Path.cwd(), *Path.cwd().parents) if (folder / MARKER).is_file()), None)
    if root is None:
        hint = "Start a project first: harness new my_project; cd my_project."
        raise DataError(f"there is no {MARKER} here or above", hint=hint)
    try:
        paths = copy(starter, root, name)
        _describe(root)
    except OSError as error:
        raise DataError(f"cannot write into {root}: {error.strerror or error}") from None
    here = [path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path for path in paths]
    spec = next(path for path in here if path.name == f"{name}.yaml" and path.parent.name == "specs")
    print("\n".join(f"  {path}" for path in here))
    print("\nTry it:", *(f"harness {command} {spec}" for command in COMMANDS), sep="\n  ")
    return 0
