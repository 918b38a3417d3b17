"""`harness trust`: what a spec, a run or a project would run or send; once read, it is approved by digest."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final

from harness.api.errors import DataError, SpecError, UserError
from harness.api.run_files import META, SPEC
from harness.cli.usage import Parser
from harness.config import spec
from harness.config.foreign_plugins import plugins_of
from harness.config.needed_approvals import approvals_of
from harness.config.project import Project, at, find
from harness.plugins import approvals
from harness.plugins.approval_record import approved, store
from harness.plugins.approvals import listing
from harness.plugins.needed_approval import NeededApproval
from harness.storage import write_atomically

MAX_APPROVALS: Final = 20_000
"""Approvals that are kept; the oldest go first."""
_SUFFIXES: Final = (".yaml", ".yml")


def trust(options: argparse.Namespace) -> int:
    """List what would run or be sent; approve it, or take that back."""
    if not options.paths and not options.key:
        return _all(options.forget)
    needed = [one for text in options.key for one in _pair(text)]
    for path in options.paths:
        needed += _needed(path)
    needed = list(dict.fromkeys(needed))
    known = approved()
    _print(needed, known)
    if options.forget:
        count = len({one.digest for one in needed} & known.keys())
        _write({digest: entry for digest, entry in known.items() if digest not in {one.digest for one in needed}})
        print(f"forgotten: {count}")
        return 0
    new = [one for one in needed if one.digest and one.digest not in known]
    if not new:
        print("nothing to approve")
        return 0
    if not options.yes and not _agreed(len(new)):
        return 2
    now = datetime.now(UTC).isoformat(timespec="seconds")
    _write(known | {one.digest: {"what": one.what, "why": one.why, "when": now} for one in new})
    print(f"approved: {len(new)} (kept in {store()})")
    return 0


def _needed(path: str) -> list[NeededApproval]:
    """What a spec, a run's folder, a project's folder or a folder of tasks would run or send.

    Raises `DataError` if it is none of these, `SpecError` if a spec cannot be read.
    """
    place, own = Path(path), find()
    if (place / META).is_file():
        return _of_spec(str(place / SPEC), own)
    if (place / approvals.MARKER).is_file():
        return _of_project(place.resolve(), own)
    if not place.is_dir():
        return _of_spec(path, own)
    files = [file for suffix in ("*.py", *(f"*{s}" for s in _SUFFIXES)) for file in sorted(place.rglob(suffix))]
    if not files:
        hint = "Give a spec, a run's folder, or the folder of a project, of tasks or of a metric's script."
        raise DataError(f"{path} holds no spec, no run, no project and no code", hint=hint)
    return [NeededApproval.of_file(file.resolve(), file.read_bytes()) for file in files if file.is_file()]


def _of_spec(path: str, own: Project) -> list[NeededApproval]:
    file = own.spec(path)
    with listing(going_on=True) as read:  # what it extends
        loaded = spec.load(str(file), own)
    return list(dict.fromkeys([*read, *approvals_of(loaded, own)]))


def _of_project(root: Path, own: Project) -> list[NeededApproval]:
    """The plugins of a project and of its parents, and what its specs would run or send."""
    opened = at(root)
    needed = [one for each in (opened.root, *opened.elsewhere()) for one in plugins_of(each)]
    needed = [one for one in needed if one.file is None or not approvals.is_own(one.file)]
    for listed in opened.listing("specs"):
        if listed.file.resolve().is_relative_to(root):
            with contextlib.suppress(UserError):  # `validate` says what is wrong with it
                needed += _of_spec(str(listed.file), own)
    return needed


def _pair(text: str) -> tuple[NeededApproval, NeededApproval]:
    variable, equals, address = text.partition("=")
    if not equals or not variable.isidentifier() or "://" not in address:
        raise SpecError(f"--key {text!r:.80}: expected VARIABLE=URL", hint="Such as OPENAI_API_KEY=https://host/v1.")
    address = address.rstrip("/")
    return NeededApproval.prompts_to(address, (), "--key"), NeededApproval.pair(variable, address, (), "--key")


def _print(needed: list[NeededApproval], known: dict[str, dict[str, object]]) -> None:
    for does, title in (("run", "would run"), ("sent", "would send"), ("read", "would read")):
        for i, one in enumerate(one for one in needed if one.does == does):
            print(f"{title}:" if i == 0 else "", end="\n" if i == 0 else "")
            note = "approved" if one.digest in known else "with --allow_code_execution only" if not one.digest else ""
            print(f"  {one}{f'  [{note}]' if note else ''}")


def _agreed(count: int) -> bool:
    """What the person at the terminal says; without a terminal no."""
    if not sys.stdin.isatty():
        print("not approved: there is no terminal to ask at. Read the files, then add --yes.", file=sys.stderr)
        return False
    print(f"Approve {'it' if count == 1 else f'these {count}'}? [y/N] ", end="", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _all(forget: bool) -> int:
    """Every approval there is."""
    known = approved()
    if forget:
        _write({})
        print(f"forgotten: {len(known)}")
        return 0
    for line in _lines(known):
        print(line)
    print(f"{len(known)} approved (kept in {store()})")
    return 0


def _lines(known: dict[str, dict[str, object]]) -> Iterator[str]:
    for digest, entry in islice(known.items(), MAX_APPROVALS):
        yield f"{digest[:12]}  {str(entry.get('when', ''))[:10]}  {entry.get('what', '')}"


def _write(entries: dict[str, dict[str, object]]) -> None:
    """Keep approvals. Raises `DataError`, `StorageError` if the folder cannot be written."""
    file = store()
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise DataError(f"cannot write {file}: {error.strerror or error}") from None
    kept = dict(list(entries.items())[-MAX_APPROVALS:])
    write_atomically(file, json.dumps({"schema": 1, "approved": kept}, indent=1) + "\n")


def options(command: Parser) -> None:
    """The options of `harness trust`."""
    command.add_argument("paths", nargs="*", metavar="PATH", help="specs, runs' folders, projects' or tasks' folders")
    text = "approve sending this environment variable to this address; repeatable"
    command.add_argument("--key", action="append", default=[], metavar="VARIABLE=URL", help=text)
    command.add_argument("--yes", action="store_true", help="approve without being asked")
    command.add_argument("--forget", action="store_true", help="revoke these approvals; without a PATH, all of them")
